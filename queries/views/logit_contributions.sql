-- One row for each example and head: what the head adds directly to the logits of the true and the predicted class.
select example, kind, layer, head, true_class, predicted_class
from stored.logit_contributions
