-- What heads attend to, and what they move from there: weight, length of what is moved at weight 1, and their product.
--
-- Tokens are [CLS], [SEP], '.' and ',', and all others, special or not. `alpha` is the weight that a query gives the
-- class, `fnorm` the mean length |f(x)| over tokens of the class, with f(x) = (x W_V + b_V) W_O, and `anorm` the sum of
-- weight times length that a query takes from the class: for one head |weight f(x)| = weight |f(x)|. `share` is its
-- part of what a head's queries take from all classes.
--
-- Macro: each example counts once, in alpha and anorm also where it has no such token. Micro: each query counts once,
-- in fnorm each token.
-- reads:   received_facts, value_norms, tokens, heads
-- needs:   value_norms
-- params:  kind text = null, mode text in (macro, micro) = macro, layer integer = null, head integer = null
-- returns: layer, head, class [cls; sep; punct; other], alpha [weight, 0-1], fnorm [length], anorm [length],
--          share [0-1], n [examples that have such tokens]
-- source:  Kobayashi et al. 2020, section 4
-- paint:   share, layers(alpha, by=class), layers(share, by=class), layers(fnorm, by=class)
with classes as (
    select
        example, side, token,
        case when special in ('cls', 'sep') then special when punct then 'punct' else 'other' end as class
    from tokens
),
sizes as (
    select t.example, count(*) as n_queries
    from tokens as t
    where t.side = (select any_value(queries) from heads where kind = $kind)
    group by t.example
),
-- One row for each example, class and head.
sums as (
    select
        r.example, c.class, h.position, any_value(s.n_queries) as n_queries, count(*) as n_tokens,
        sum(r.received[h.position]::double) as alpha,
        sum(v.value_norm[h.position]::double) as fnorm,
        sum(r.received[h.position]::double * v.value_norm[h.position]) as anorm
    from stored.received_facts as r
    join stored.value_norms as v using (example, kind, token)
    join stored.heads as h
        on h.kind = r.kind and ($layer is null or h.layer = $layer) and ($head is null or h.head = $head)
    join classes as c on c.example = r.example and c.token = r.token and c.side = h.keys
    join sizes as s on s.example = r.example
    where r.kind = $kind
    group by r.example, c.class, h.position
),
totals as (
    select if($mode = 'macro', count(*), sum(n_queries)) as weight
    from sizes
    where example in (select example from sums)
),
means as (
    select
        s.class, s.position,
        sum(s.alpha * if($mode = 'macro', 1, s.n_queries)) / any_value(t.weight) as alpha,
        if($mode = 'macro', avg(s.fnorm / s.n_tokens), sum(s.fnorm) / sum(s.n_tokens)) as fnorm,
        sum(s.anorm * if($mode = 'macro', 1, s.n_queries)) / any_value(t.weight) as anorm,
        count(*) as n
    from sums as s, totals as t
    group by s.class, s.position
)
select
    h.layer, h.head, m.class, m.alpha, m.fnorm, m.anorm,
    m.anorm / nullif(sum(m.anorm) over (partition by m.position), 0) as share,
    m.n
from means as m
join stored.heads as h on h.kind = $kind and h.position = m.position
order by h.layer, h.head, list_position(['cls', 'sep', 'punct', 'other'], m.class)
