-- One row for each example: the half, 0 or 1, that it falls into where one half chooses and the other scores.
--
-- Documents take turns, in the order of their first examples; so do pairs (`pair_id`), and examples that belong to
-- neither. What belongs together stays together, since the same author and topic in both halves would tell the one
-- about the other. Where everything is one document, its examples take turns.
with wholes as (
    select
        example,
        min(example) over (partition by coalesce('d' || document, 'p' || pair_id, 'e' || example)) as first_example
    from examples
)
select
    example,
    (
        if(
            min(first_example) over () < max(first_example) over (),
            dense_rank() over (order by first_example),
            dense_rank() over (order by example)
        ) - 1
    ) % 2 as half
from wholes
