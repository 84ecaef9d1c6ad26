-- Which heads link a frame's elements to its target: the largest weight between them, on average over sentences.
--
-- Links go from a frame element (source) to the target of its frame. `max_of_both` is the larger of the two
-- directions. `unit = link` averages over links instead. `core` leaves out elements that the corpus says are not core.
-- `min_distance` leaves out links of which nearer words belong to both spans (neighbours have distance 1).
-- `filter = kovaleva` keeps the sentences of the paper: one target, at least one core element, at most 12 words, no
-- element longer than 3 words, and none of them within 2 words of the target. Their released code asks for this
-- filter, `level = token` and `pairs = zip`, and reports element_to_target; of a sentence it takes the first element.
-- reads:   link_facts(level=$level, pairs=$pairs, pieces=$pieces), links, examples
-- needs:   links
-- params:  kind text = null, level text in (word, token) = word, pairs text in (all, zip) = all,
--          pieces text in (mean, first, max) = mean, unit text in (sentence, link) = sentence, core boolean = true,
--          relation text = null, min_distance integer = 0, filter text in (none, kovaleva) = none
-- returns: layer, head, direction [element_to_target; target_to_element; max_of_both], value [weight, 0-1],
--          percentile [share of the other heads with a lower value, 0-1], n [sentences, or links]
-- source:  Kovaleva et al. 2019, section 4.2 and figure 3
-- paint:   value, layers(value, by=direction)
with spans as (
    select
        example, link, relation, source_start_word, coalesce(core, true) as core,
        -- 0 where the spans share a word.
        greatest(target_start_word - source_end_word + 1, source_start_word - target_end_word + 1, 0) as distance,
        source_end_word - source_start_word as size,
        row(target_start_word, target_end_word) as target
    from links
),
sentences as (
    select s.example
    from spans as s
    join examples as e using (example)
    group by s.example
    having
        $filter = 'none'
        or (
            max(e.n_words) <= 12 and count(distinct s.target) = 1
            and bool_or(s.core) and max(s.size) <= 3 and min(s.distance) > 2
        )
),
chosen as (
    select example, link
    from spans
    where
        example in (from sentences)
        and distance >= $min_distance
        and (core or not $core)
        and ($relation is null or relation = $relation)
    qualify $pairs = 'all' or row_number() over (partition by example order by source_start_word, link) = 1
),
weights as (
    select
        f.example, if($unit = 'link', f.link, null) as link, f.layer, f.head,
        max(f.source_to_target) as element_to_target,
        max(f.target_to_source) as target_to_element
    from link_facts as f
    join chosen using (example, link)
    where f.kind = $kind
    group by all
),
means as (
    select
        layer, head,
        unnest(['element_to_target', 'target_to_element', 'max_of_both']) as direction,
        unnest([
            avg(element_to_target),
            avg(target_to_element),
            avg(greatest(element_to_target, target_to_element))
        ]) as value,
        count(element_to_target) as n
    from weights
    group by layer, head
)
select
    layer, head, direction, value,
    if(value is not null, percent_rank() over (partition by direction order by value), null) as percentile,
    n
from means
order by layer, head, list_position(['element_to_target', 'target_to_element', 'max_of_both'], direction)
