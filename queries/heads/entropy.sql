-- How widely each head spreads its attention: the entropy of its rows.
--
-- `smoothed` adds eps to every weight as the paper does, `exact` takes the weights as they are. The normalised entropy
-- is exact: each row by the logarithm of the keys that it sees, over rows that see two or more.
-- reads:   head_facts(eps=$eps)
-- params:  kind text = null, mode text in (macro, micro) = macro, eps real = 0.0001,
--          variant text in (smoothed, exact) = smoothed
-- returns: layer, head, entropy_nats, entropy_normalised [0-1], uniform_nats [of uniform attention], n [examples]
-- source:  Clark et al. 2019, section 3.3
-- paint:   entropy_nats, layers(entropy_nats, line=uniform_nats)
with sums as (
    select
        layer, head, n_queries, n_normalised, log_keys_sum, entropy_normalised_sum,
        if($variant = 'exact', entropy_exact_sum, entropy_sum) as entropy_sum
    from head_facts
    where kind = $kind
)
select
    layer, head,
    case $mode
        when 'macro' then avg(entropy_sum / n_queries)
        else sum(entropy_sum) / sum(n_queries)
    end as entropy_nats,
    case $mode
        when 'macro' then avg(entropy_normalised_sum / nullif(n_normalised, 0))
        else sum(entropy_normalised_sum) / nullif(sum(n_normalised), 0)
    end as entropy_normalised,
    case $mode
        when 'macro' then avg(log_keys_sum / n_queries)
        else sum(log_keys_sum) / sum(n_queries)
    end as uniform_nats,
    count(*) as n
from sums
group by layer, head
order by layer, head
