-- How much the loss depends on attention to each class of tokens: gradients by the weights.
--
-- Large weights on a class with small gradients are attention that changes nothing ("no-op"). `gradient_weight` is the
-- weight times its gradient: the first-order loss of the edge, with its sign. `pairs` averages over pairs of a query and
-- a key, in a causal map those where the query sees the key; `keys_summed` adds up the keys of a class and averages over
-- queries, as heads/flow does for the weights. Macro: each example counts once; micro: each pair or query does.
-- `not_finite` examples have gradients that are no numbers, and are left out.
-- needs:   gradient_facts
-- reads:   gradient_facts
-- params:  kind text = null, average text in (pairs, keys_summed) = pairs, queries text in (all, by_class) = all,
--          mode text in (macro, micro) = macro
-- returns: layer, head, query_class, key_class, mean_abs_gradient [|dLoss/dweight|],
--          mean_gradient_weight [weight * dLoss/dweight], mean_abs_gradient_weight, mean_weight [0-1],
--          n [examples], not_finite [examples]
-- source:  Clark et al. 2019, section 3.2, figure 3
-- paint:   layers(mean_abs_gradient, by=key_class), layers(mean_abs_gradient_weight, by=key_class), mean_abs_gradient
with facts as (
    select
        example, layer, head, if($queries = 'all', 'all', query_class) as query_class, key_class,
        abs_gradient is not null as is_finite, sum(n_queries) as n_queries, sum(n_pairs) as n_pairs,
        sum(abs_gradient) as abs_gradient, sum(gradient_weight) as gradient_weight,
        sum(abs_gradient_weight) as abs_gradient_weight, sum(weight) as weight
    from gradient_facts
    where kind = $kind
    group by all
),
asked as (
    -- Examples with queries of the class: keys of a class that one of them lacks add nothing to its sum over keys.
    select query_class, count(*) filter (is_finite) as examples, sum(n_queries) filter (is_finite) as queries
    from (select distinct example, query_class, is_finite, n_queries from facts)
    group by query_class
),
shares as (
    select
        f.*,
        if($mode = 'micro', 1, if($average = 'pairs', n_pairs, n_queries)) as share,
        case
            when not is_finite or ($average = 'pairs' and n_pairs = 0) then null
            when $mode = 'micro' then n_pairs
            else 1
        end as own
    from facts as f
),
summed as (
    select
        layer, head, query_class, key_class,
        sum(abs_gradient / share) filter (own is not null) as abs_gradient,
        sum(gradient_weight / share) filter (own is not null) as gradient_weight,
        sum(abs_gradient_weight / share) filter (own is not null) as abs_gradient_weight,
        sum(weight / share) filter (own is not null) as weight,
        sum(own) as pairs, count(own) as n, count(*) filter (not is_finite) as not_finite
    from shares
    group by layer, head, query_class, key_class
),
divided as (
    select
        s.*,
        nullif(if($average = 'pairs', s.pairs, if($mode = 'micro', a.queries, a.examples)), 0) as total
    from summed as s
    join asked as a using (query_class)
)
select
    layer, head, query_class, key_class, abs_gradient / total as mean_abs_gradient,
    gradient_weight / total as mean_gradient_weight, abs_gradient_weight / total as mean_abs_gradient_weight,
    weight / total as mean_weight, n, not_finite
from divided
order by layer, head, query_class, key_class
