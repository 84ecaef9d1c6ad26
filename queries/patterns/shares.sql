-- Which share of maps shows each pattern, by layer, by the example's label, or both.
--
-- `labels = rules` takes the pattern of patterns/features; `own` takes the ones given by
-- `attnstore annotate --patterns`, by hand or by a classifier of your own (all of them where several annotators gave
-- some, or those of `annotator`). Patterns that no map of a layer or label shows have share 0.
-- reads:   pattern_facts, pattern_labels, examples
-- needs:   patterns if labels=own, labels if by=label, labels if by=both
-- params:  kind text = null, by text in (all, layer, label, both) = layer, labels text in (rules, own) = rules,
--          annotator text = null
-- returns: layer [null for all], label [of the example; null for all], pattern, share [0-1], n [maps that have one]
-- source:  Kovaleva et al. 2019, section 4.1 and figure 2
-- paint:   stack(share, of=pattern, by=layer), stack(share, of=pattern, by=label)
with maps as (
    select example, layer, head, pattern from map_patterns where kind = $kind and $labels = 'rules'
    union all
    select example, layer, head, pattern
    from pattern_labels
    where kind = $kind and $labels = 'own' and ($annotator is null or annotator = $annotator)
),
placed as (
    select
        if($by in ('layer', 'both'), m.layer, null) as layer,
        if($by in ('label', 'both'), e.label, null) as label,
        m.pattern
    from maps as m
    join examples as e using (example)
),
totals as (select layer, label, count(*) as n from placed group by all),
counts as (select layer, label, pattern, count(*) as n from placed group by all),
named as (select ['vertical', 'diagonal', 'vertical_diagonal', 'block', 'heterogeneous'] as names),
patterns as (
    select unnest(names) as pattern from named where $labels = 'rules'
    union
    select pattern from placed
)
select t.layer, t.label, p.pattern, coalesce(c.n, 0) / t.n as share, t.n
from totals as t
cross join patterns as p
left join counts as c
    on c.layer is not distinct from t.layer and c.label is not distinct from t.label and c.pattern = p.pattern
order by
    t.layer, t.label,
    if($labels = 'rules', list_position((select names from named), p.pattern), null),
    p.pattern
