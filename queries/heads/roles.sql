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
-- Rows that meet lists over heads are few and narrow: a number stands for the relation.
buckets as materialized (
    select relation, (row_number() over ())::smallint as bucket
    from baselines
),
asked as materialized (
    select b.bucket, a.example, a.word, a.governor
    from arcs as a
    join buckets as b using (relation)
),
by_dependent as not materialized (
    select a.bucket, a.governor, f.attends_to
    from asked as a
    join stored.word_facts as f on f.example = a.example and f.word = a.word
    where f.kind = $kind
),
by_governor as not materialized (
    select a.bucket, a.word, f.attends_to
    from asked as a
    join stored.word_facts as f on f.example = a.example and f.word = a.governor
    where f.kind = $kind
),
bucket_hits as (
    select 'dep_to_head' as direction, p.bucket, h.position, count(*) as correct
    from by_dependent as p
    join stored.heads as h on p.attends_to[h.position] = p.governor
    where h.kind = $kind
    group by p.bucket, h.position
    union all
    select 'head_row', p.bucket, h.position, count(*)
    from by_governor as p
    join stored.heads as h on p.attends_to[h.position] = p.word
    where h.kind = $kind
    group by p.bucket, h.position
),
hits as (
    select h.position, b.relation, d.direction, coalesce(c.correct, 0) as correct
    from buckets as b
    cross join stored.heads as h
    cross join (select unnest(['dep_to_head', 'head_row']) as direction) as d
    left join bucket_hits as c
        on c.bucket = b.bucket and c.position = h.position and c.direction = d.direction
    where h.kind = $kind
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
