-- One row for each pair of texts and head: the weight between equal words of both parts, and a control.
select example, kind, layer, head, n_a, n_b, a_to_b_sum, b_to_a_sum, a_to_b_control_sum, b_to_a_control_sum
from stored.same_word_facts
