-- How widely [CLS] spreads its attention: the entropy of its row. Examples without [CLS] are left out.
--
-- The normalised entropy divides by the logarithm of the keys; it is null where a query sees only what precedes it.
-- reads:   head_facts(eps=$eps), heads
-- params:  kind text = null, mode text in (macro, micro) = macro, eps real = 0.0001,
--          variant text in (smoothed, exact) = smoothed
-- returns: layer, head, entropy_nats, entropy_normalised [0-1], n [examples with CLS]
-- source:  Clark et al. 2019, section 3.3
-- paint:   entropy_nats, layers(entropy_nats)
with sums as (
    select
        f.layer, f.head, f.n_cls,
        if($variant = 'exact', f.cls_entropy_exact_sum, f.cls_entropy_sum) as entropy_sum,
        if(h.causal or f.n_keys < 2, null, f.cls_entropy_exact_sum / ln(f.n_keys)) as normalised_sum
    from head_facts as f
    join heads as h using (kind, layer, head)
    where kind = $kind and f.n_cls > 0
)
select
    layer, head,
    case $mode
        when 'macro' then avg(entropy_sum / n_cls)
        else sum(entropy_sum) / sum(n_cls)
    end as entropy_nats,
    case $mode
        when 'macro' then avg(normalised_sum / n_cls)
        else sum(normalised_sum) / sum(n_cls) filter (normalised_sum is not null)
    end as entropy_normalised,
    count(*) as n
from sums
group by layer, head
order by layer, head
