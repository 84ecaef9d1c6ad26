-- What the heads of a layer move together, from each class of key tokens to each class of query tokens.
--
-- `layer_norm` is |sum over heads of weight f(x)|, which is less than the sum of the lengths of heads that pull apart.
-- `residual_norm` adds the query's stream where it attends to itself, and `residual_norm_ln` takes that after the norm
-- of the sum, its scale frozen: what takes the place of a layer's map. Null where a model has none. `mean` is over
-- pairs that a query sees, `per_query` what a query takes from the class in all, `share` its part of what it takes.
-- reads:   layer_norm_facts(classes=$classes)
-- needs:   value_grams, tags if classes=upos, parts if classes=part
-- params:  kind text = null, classes text in (special, upos, part, kind) = special, layer integer = null
-- returns: layer, variant [layer_norm; residual_norm; residual_norm_ln], query_class, key_class,
--          mean [length a pair], per_query [length a query], share [0-1], n [pairs]
-- source:  Kobayashi et al. 2020, section 5; Kobayashi et al. 2021, section 3
-- paint:   matrix(share, query_class, key_class, by=variant), matrix(mean, query_class, key_class, by=layer)
with sums as (
    select
        layer, query_class, key_class, sum(n_pairs)::bigint as n,
        unnest(['layer_norm', 'residual_norm', 'residual_norm_ln']) as variant,
        unnest([sum(layer_norm_sum), sum(residual_norm_sum), sum(residual_norm_ln_sum)]) as total
    from layer_norm_facts
    where kind = $kind and ($layer is null or layer = $layer)
    group by layer, query_class, key_class
),
queries as (
    -- A class of keys may be absent from an example, and its queries count all the same.
    select query_class, sum(n_queries) as n_queries
    from (select distinct example, query_class, n_queries from layer_norm_facts where kind = $kind)
    group by query_class
)
select
    s.layer, s.variant, s.query_class, s.key_class,
    s.total / nullif(s.n, 0) as mean,
    s.total / q.n_queries as per_query,
    s.total / nullif(sum(s.total) over (partition by s.layer, s.variant, s.query_class), 0) as share,
    s.n
from sums as s
join queries as q using (query_class)
order by s.layer, s.variant, s.query_class, s.key_class
