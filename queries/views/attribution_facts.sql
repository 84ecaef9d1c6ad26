-- One row for each example and head: integrated gradients of a class's logit along the weights of the head's layer.
-- `max` and `sum` are over the edges of the head's map; `change` is what the sums of all heads of the layer add up to.
select example, kind, layer, head, "max", "sum", change
from stored.attribution_facts
