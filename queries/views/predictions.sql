-- What the model predicts for each example, as it is and with heads switched off; `gold` is what is right.
select head_set, task, example, loss, n, gold, predicted, score, logits
from stored.predictions
