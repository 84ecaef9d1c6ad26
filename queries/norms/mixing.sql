-- How much of a token a layer takes from other tokens, and how much it keeps: mixing ratios.
--
-- 0: the token is what it was; 1: all of it comes from others. `Attn-W` is the weight to other tokens, mean over heads,
-- and `AttnRes-W` half of it. `Attn-N` compares lengths, what all heads take from others and from the token itself;
-- `AttnRes-N` adds the token's stream to the latter; `AttnResLn-N` takes both after the norm of the sum, its scale
-- frozen, and is null in models without one, as in pre-norm models. Every token counts once. Rows without a layer are
-- of all layers together, as the paper's table. Cross-attention has no rows.
-- reads:   mixing_facts, tokens
-- needs:   mixing_facts
-- params:  kind text = null, classes text in (none, special) = none
-- returns: layer [null: all], variant [Attn-W; AttnRes-W; Attn-N; AttnRes-N; AttnResLn-N],
--          class [all; or cls; sep; punct; other], mean [0-1], max, min, n [tokens with a ratio]
-- source:  Kobayashi et al. 2021, table 1
-- paint:   layers(mean, by=variant), bars(mean, by=variant, label=layer, low=min, high=max)
with ratios as (
    select
        m.layer,
        case
            when $classes = 'none' then 'all'
            when t.special in ('cls', 'sep') then t.special
            when t.punct then 'punct'
            else 'other'
        end as class,
        unnest(['Attn-W', 'AttnRes-W', 'Attn-N', 'AttnRes-N', 'AttnResLn-N']) as variant,
        unnest([
            1 - m.self_weight::double,
            (1 - m.self_weight::double) / 2,
            m.mix_norm::double / nullif(m.mix_norm::double + m.pres_norm, 0),
            m.mix_norm::double / nullif(m.mix_norm::double + m.pres_norm_res, 0),
            m.mix_norm_ln::double / nullif(m.mix_norm_ln::double + m.pres_norm_ln, 0)
        ]) as ratio
    from mixing_facts as m
    join tokens as t using (example, side, token)
    where m.kind = $kind
)
select layer, variant, class, avg(ratio) as mean, max(ratio) as max, min(ratio) as min, count(ratio) as n
from ratios
group by grouping sets ((layer, variant, class), (variant, class))
order by
    layer nulls first, list_position(['Attn-W', 'AttnRes-W', 'Attn-N', 'AttnRes-N', 'AttnResLn-N'], variant),
    list_position(['all', 'cls', 'sep', 'punct', 'other'], class)
