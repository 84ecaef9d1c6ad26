-- One row for each dependent and candidate for its governor, with the weights both ways as lists over heads.
select example, kind, sentence, dependent, candidate, label, forward, backward
from stored.pair_rows
