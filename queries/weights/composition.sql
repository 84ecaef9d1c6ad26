-- Which heads read what heads of earlier layers write: Q-, K- and V-composition, the strongest first.
--
-- |W_OV W| / (|W_OV| |W|) in Frobenius norms, with W = W_Q W_K^T of the later head (relation q), its transpose (k), or
-- its W_V W_O (v). `random` is the root of the mean squared score of matrices with the same singular values that are
-- turned at random: 1 / sqrt(hidden size). Gains of the norms before both layers are multiplied in where there are such
-- norms (`folded`); biases are left out, and so is that a norm may take out the mean. `approximate`: the path is not
-- linear, since the sum of both is normalised in between (post-norm models, such as BERT), or queries and keys are
-- turned by position.
-- reads:   compositions
-- needs:   head_weights
-- params:  kind text = null, relation text in (q, k, v) = null, layer_a integer = null, layer_b integer = null,
--          limit integer from 0 = 100
-- returns: relation, layer_a, head_a, layer_b, head_b, score [0-1], random [0-1], over_random [score - random],
--          approximate, folded
-- source:  Elhage et al. 2021; essay on transformer heads, section 2
-- paint:   matrix(score, layer_a, layer_b, by=relation)
select
    relation, layer_a, head_a, layer_b, head_b, score, random, score - random as over_random, approximate, folded
from compositions
where
    kind = $kind
    and ($relation is null or relation = $relation)
    and ($layer_a is null or layer_a = $layer_a)
    and ($layer_b is null or layer_b = $layer_b)
order by score desc nulls last, relation, layer_a, head_a, layer_b, head_b
limit $limit
