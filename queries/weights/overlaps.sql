-- Which heads of a layer write in the same directions: the principal angles between the row spaces of their W_O.
--
-- `overlap` is the mean of the squared cosines of all angles: 1 where one head writes within the directions of the
-- other, 0 where the directions are at right angles, `random` on average where they are turned at random. The most
-- alike come first.
-- reads:   head_overlaps
-- needs:   head_weights
-- params:  kind text = null, limit integer from 0 = 100
-- returns: layer, head_a, head_b, overlap [0-1], random [0-1], cosine_smallest [of the smallest angle, 0-1],
--          cosine_mean [of the mean of the angles, 0-1], cosine_largest [of the largest angle, 0-1]
-- source:  essay on transformer heads, section 2
-- paint:   matrix(overlap, head_a, head_b, by=layer)
select layer, head_a, head_b, overlap, random, cosine_smallest, cosine_mean, cosine_largest
from head_overlaps
where kind = $kind
order by overlap desc nulls last, layer, head_a, head_b
limit $limit
