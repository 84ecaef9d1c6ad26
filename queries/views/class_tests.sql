-- One row for each head: how a statistic of it differs between the classes of examples.
select kind, layer, head, eta2, eta2_chance, h, p, q, best_class, direction, auroc, n, n_classes
from stored.class_tests
