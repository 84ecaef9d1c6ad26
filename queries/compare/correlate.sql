-- Are the heads that stand out in one store those that stand out in the other: rank correlation, and who is on top.
--
-- The numbers are those of the view `head_numbers`, over all examples of each store. The `top` heads with the largest
-- value are those of the highest `share` of all; ties go to the lowest layer and head. `jaccard` is the number of heads
-- that are on top in both, over that of heads that are in one of them; `chance` is how many two random choices would
-- have in common. With two tasks and an ablation as number, the shared heads are those that matter for both.
-- Models that have not as many layers and heads have nothing in common, and get no row.
-- reads:   a.head_facts, b.head_facts, a.head_numbers, b.head_numbers
-- needs:   head_weights if number in (w_query_norm, w_key_norm, w_value_norm, w_output_norm, w_output_share,
--          w_output_spectral, qk_norm, qk_spectral, qk_rank, ov_norm, ov_spectral, ov_rank, copying),
--          output_norms if number in (output_norm, output_share),
--          ablated_zero if number=ablation_zero, ablated_uniform if number=ablation_uniform,
--          ablated_mean if number=ablation_mean,
--          importance_facts if number in (importance, importance_tokens)
-- params:  kind text = null,
--          number text in (confidence, entropy, cls, sep, previous, next, self, distance, w_query_norm, w_key_norm,
--          w_value_norm, w_output_norm, w_output_share, w_output_spectral, qk_norm, qk_spectral, qk_rank, ov_norm,
--          ov_spectral, ov_rank, copying, output_norm, output_share, ablation_zero, ablation_uniform, ablation_mean,
--          importance, importance_tokens) = null,
--          share real = 0.1
-- returns: number, spearman [-1 to 1; null where all heads are alike], jaccard [0-1], shared [heads on top in both],
--          top [heads on top of one], chance [heads], shared_heads [layer-head, from 0], n [heads]
-- source:  essay on transformer heads, sections 3 and 5
-- paint:   bars(spearman, by=number), bars(jaccard, by=number)
with joined as (
    select layer, head, number, a.value as value_a, b.value as value_b
    from (from a.head_numbers where kind = $kind and ($number is null or number = $number)) as a
    join (from b.head_numbers where kind = $kind and ($number is null or number = $number)) as b
        using (layer, head, number)
    where
        if($share > 0 and $share <= 1, true, error('share: over 0, at most 1'))
        and a.value is not null
        and b.value is not null
        and (
            (select (layers, heads) from a.stored.kinds where kind = $kind)
            = (select (layers, heads) from b.stored.kinds where kind = $kind)
        )
),
-- Equal values share the mean of their ranks.
ranked as (
    select
        number, layer, head,
        rank() over (partition by number order by value_a)
            + (count(*) over (partition by number, value_a) - 1) / 2 as rank_a,
        rank() over (partition by number order by value_b)
            + (count(*) over (partition by number, value_b) - 1) / 2 as rank_b,
        row_number() over (partition by number order by value_a desc, layer, head) as place_a,
        row_number() over (partition by number order by value_b desc, layer, head) as place_b,
        greatest(1, round($share * count(*) over (partition by number)))::bigint as top
    from joined
)
select
    number,
    if(min(rank_a) < max(rank_a) and min(rank_b) < max(rank_b), corr(rank_a, rank_b), null) as spearman,
    count(*) filter (place_a <= top and place_b <= top)
        / nullif(count(*) filter (place_a <= top or place_b <= top), 0) as jaccard,
    count(*) filter (place_a <= top and place_b <= top) as shared,
    any_value(top) as top,
    any_value(top) * any_value(top) / count(*) as chance,
    string_agg(layer || '-' || head, ' ' order by layer, head) filter (place_a <= top and place_b <= top)
        as shared_heads,
    count(*) as n
from ranked
group by number
order by number
