-- One row for each set of heads and metric that is a mean over examples: how far its delta hangs on which there are.
select head_set, metric, delta_low, delta_high
from stored.set_intervals
