-- One row for each map that was given a pattern by hand or by a classifier.
select example, kind, layer, head, pattern, annotator
from stored.pattern_labels
