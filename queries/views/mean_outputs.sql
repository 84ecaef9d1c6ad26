-- What each head hands to W_O on average over all tokens: what it gave where it was replaced by its mean.
select kind, layer, head, n, mean_output
from stored.mean_outputs
