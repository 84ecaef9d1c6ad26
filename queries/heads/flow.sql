-- Who attends to whom: the weight from each class of query tokens to each class of key tokens.
--
-- `special` tells special tokens, '.' and ',' from all others, `upos` parts of speech, `part` the two texts of a pair,
-- `kind` what a token stands for: cls, register, patch, code, text.
-- The weights of one query class sum to 1 over key classes; `chance` is what equal attention to all visible keys
-- gives. Cross maps have no answer: their queries and keys are tokens of two texts.
-- reads:   flow_facts(classes=$classes)
-- needs:   tags if classes=upos, parts if classes=part
-- params:  kind text = null, classes text in (special, upos, part, kind) = special,
--          mode text in (macro, micro) = macro, layer integer = null, head integer = null
-- returns: layer, head, query_class, key_class, weight [0-1, of a query's row], chance [0-1],
--          n [queries of the class]
-- source:  attention between token classes, after Clark et al. 2019, section 3.2
-- paint:   matrix(weight, query_class, key_class), matrix(weight, query_class, key_class, by=layer)
with masses as (
    -- Macro: each example's mean query counts once; micro: each query does.
    select
        layer, head, query_class, key_class,
        sum(mass / if($mode = 'macro', n_queries, 1)) as mass,
        sum(uniform / if($mode = 'macro', n_queries, 1)) as uniform
    from flow_facts
    where
        kind = $kind
        and ($layer is null or layer = $layer)
        and ($head is null or head = $head)
    group by layer, head, query_class, key_class
),
queries as (
    -- A class of keys may be absent from an example, and its queries count all the same.
    select query_class, sum(n_queries)::bigint as n, if($mode = 'macro', count(*), n) as shares
    from (select distinct example, query_class, n_queries from flow_facts where kind = $kind)
    group by query_class
)
select m.layer, m.head, m.query_class, m.key_class, m.mass / q.shares as weight, m.uniform / q.shares as chance, q.n
from masses as m
join queries as q using (query_class)
order by m.layer, m.head, m.query_class, m.key_class
