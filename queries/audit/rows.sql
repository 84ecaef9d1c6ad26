-- How far the rows of each head's stored maps are from summing to 1.
--
-- Rounding explains up to 0.002 at standard and 0.02 at compact precision. In a store of the largest weights only, the
-- difference is what was not kept. The first time decodes every map that is asked about.
-- reads:   attention, row_errors(kind=$kind, layer=$layer, head=$head, examples=$examples)
-- params:  kind text = null, layer integer = null, head integer = null, examples integer from 0 = null
-- returns: layer, head, largest_error [of a row sum], mean_error, n [rows]
-- source:  the stored maps
-- paint:   largest_error
select layer, head, largest_error, mean_error, n
from row_errors
where kind = $kind
order by layer, head
