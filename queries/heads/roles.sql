-- Whether each head is positional or syntactic by the tests of Voita et al.
--
-- `positional`: the share of queries, special tokens left out, whose largest weight lies on the key at one relative
-- offset, the head's most frequent one (the nearest on a tie). `syntactic`: by how much the head's accuracy exceeds
-- the share of the relation's most frequent distance, for the relation and direction where that is most; directions
-- are dep_to_head and head_row of relations/accuracy. The paper has nsubj, obj, amod and advmod, and calls a head
-- positional from 0.9 on and syntactic from 0.1 on: `holds` says so. Its third role, rare words, needs word
-- frequencies and is not here.
-- reads:   tokens, token_facts, relations, heads, word_facts(pieces=$pieces)
-- params:  kind text = null, relations text in (published, all) = published, min_count integer = 1,
--          positional real = 0.9, syntactic real = 0.1, pieces text in (mean, first, max) = mean
-- returns: layer, head, role [positional; syntactic], value [share, 0-1; gain in accuracy], n [queries; dependents],
--          holds, offset [tokens; words from dependent to governor], relation, direction [dep_to_head; head_row]
-- source:  Voita et al. 2019, section 5
-- paint:   grid(value, by=role)
with queries as (
    select f.example, f.token, f.argmax
    from stored.token_facts as f
    join tokens as t on t.example = f.example and t.token = f.token
    where
        f.kind = $kind
        and $kind <> 'cross'
        and t.side = (select any_value(queries) from heads where kind = $kind)
        and t.special is null
),
offsets as (
    select h.position, q.argmax[h.position] - q.token as "offset", count(*) as n
    from queries as q, stored.heads as h
    where h.kind = $kind
    group by all
),
by_offset as (
    select position, 'positional' as role, max(n) / sum(n) as value, sum(n)::bigint as n,
        arg_max("offset", (n, -abs("offset"), -"offset")) as "offset", null as relation, null as direction
    from offsets
    group by position
),
arcs as materialized (
    select example, word, governor, split_part(deprel, ':', 1) as relation
    from relations
    where
        not derived
        and governor is not null
        and $kind <> 'cross'
        and side = (select any_value(queries) from heads where kind = $kind)
        and split_part(deprel, ':', 1) not in ('root', 'punct')
        and ($relations = 'all' or split_part(deprel, ':', 1) in ('nsubj', 'obj', 'dobj', 'amod', 'advmod'))
),
distances as (
    select relation, governor - word as "offset", count(*) as n
    from arcs
    group by all
),
baselines as (
    select relation, sum(n)::bigint as n, max(n) / sum(n) as share,
        arg_max("offset", (n, -abs("offset"), -"offset")) as "offset"
    from distances
    group by relation
    having sum(n) >= $min_count
),
asked as (
    select example, relation, 'dep_to_head' as direction, word, governor as gold from arcs
    union all
    select example, relation, 'head_row', governor, word from arcs
),
predictions as (
    select a.relation, a.direction, a.gold, f.attends_to as predicted
    from asked as a
    join stored.word_facts as f on f.example = a.example and f.word = a.word
    where f.kind = $kind
),
hits as (
    select h.position, p.relation, p.direction, count(*) filter (p.predicted[h.position] = p.gold) as correct
    from predictions as p, stored.heads as h
    where h.kind = $kind
    group by all
),
gains as (
    select h.position, h.relation, h.direction, b.n, b.offset, h.correct / b.n - b.share as gain
    from hits as h
    join baselines as b using (relation)
),
by_relation as (
    select position, 'syntactic' as role, gain as value, n, "offset", relation, direction
    from gains
    qualify row_number() over (partition by position order by gain desc, relation, direction) = 1
)
select
    h.layer, h.head, r.role, r.value, r.n,
    r.value >= if(r.role = 'positional', $positional, $syntactic) as holds,
    r.offset, r.relation, r.direction
from (from by_offset union all from by_relation) as r
join stored.heads as h on h.kind = $kind and h.position = r.position
order by r.role, h.layer, h.head
