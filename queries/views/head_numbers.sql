-- One row for each head and number about it that the store has, to be held against one another.
--
-- From the maps, as in `head_means`: confidence, entropy, cls, sep, previous, next, self, distance. Of the weights, as
-- in `head_weights`: names with w_, qk_, ov_, and copying. output_norm: mean length of what the head adds to a token,
-- each example counting the same; output_share: that as a share of the sum over the heads of the layer. ablation_zero,
-- _uniform, _mean: what the task loses by its default metric when the head alone is switched off so, as `harm` in
-- `head_effects`; where layers share their parameters, a head is off in one layer alone.
-- importance: mean over examples of |<output, gradient of the loss>| summed over tokens before the absolute value is
-- taken; importance_tokens: the mean over tokens of the absolute value of each (Michel et al. 2019, paper and code).
-- Another number is one more branch here, and a choice of heads/correlate and compare/correlate.
with outputs as (
    select kind, layer, head, avg(norm) as norm
    from (
        select o.example, o.kind, h.layer, h.head, avg(o.output_norm[h.position]) as norm
        from stored.output_norms as o
        join stored.heads as h using (kind)
        group by o.example, o.kind, h.layer, h.head
    )
    group by kind, layer, head
)
select
    kind, layer, head,
    unnest(['confidence', 'entropy', 'cls', 'sep', 'previous', 'next', 'self', 'distance']) as number,
    unnest([confidence, entropy_nats, cls, sep, previous, next, self, distance_tokens]) as value
from head_means
union all
select
    kind, layer, head,
    unnest([
        'w_query_norm', 'w_key_norm', 'w_value_norm', 'w_output_norm', 'w_output_share', 'w_output_spectral',
        'qk_norm', 'qk_spectral', 'qk_rank', 'ov_norm', 'ov_spectral', 'ov_rank', 'copying'
    ]),
    unnest([
        w_query_norm, w_key_norm, w_value_norm, w_output_norm, w_output_share, w_output_spectral,
        qk_norm, qk_spectral, qk_rank, ov_norm, ov_spectral, ov_rank, copying
    ])
from stored.head_weights
union all
select kind, layer, head, 'output_norm', norm
from outputs
union all
select kind, layer, head, 'output_share', norm / nullif(sum(norm) over (partition by kind, layer), 0)
from outputs
union all
select kind, layer, head, 'ablation_zero', harm
from head_effects
where is_default and intervention = 'zero'
union all
select kind, layer, head, 'ablation_uniform', harm
from head_effects
where is_default and intervention = 'uniform'
union all
select kind, layer, head, 'ablation_mean', harm
from head_effects
where is_default and intervention = 'mean'
union all
select kind, layer, head, 'importance', avg(abs(importance))
from stored.importance_facts
group by kind, layer, head
union all
select kind, layer, head, 'importance_tokens', sum(importance_abs_tokens) / nullif(sum(n_tokens), 0)
from stored.importance_facts
where importance_abs_tokens is not null
group by kind, layer, head
