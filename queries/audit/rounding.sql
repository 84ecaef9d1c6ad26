-- How far stored weights are from what the model gave: the largest weight of each row against its exact fact.
--
-- The fact was computed before the map was rounded, and is itself rounded to float16: by up to 0.00025 near 1. The first
-- time decodes every map that is asked about.
-- reads:   attention, rounding_errors(kind=$kind, layer=$layer, head=$head, examples=$examples)
-- params:  kind text = null, layer integer = null, head integer = null, examples integer from 0 = null
-- returns: layer, head, largest_difference [weight, 0-1], mean_difference, n [rows]
-- source:  the stored maps and facts
-- paint:   largest_difference
select layer, head, largest_difference, mean_difference, n
from rounding_errors
where kind = $kind
order by layer, head
