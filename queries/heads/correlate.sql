-- Do heads that have much of one number have much of another: rank and plain correlation over the heads of a model.
--
-- The numbers are those of the view `head_numbers`; without y, x is held against every other number that the store has.
-- `low` and `high` are the 2.5 and 97.5 percentiles of Spearman's coefficient where the heads are drawn anew, with
-- replacement, `bootstrap` times. The heads of a model are no random sample: read them as how much hangs on few heads.
-- Equal seeds give equal intervals, and all pairs over as many heads share their draws. Null where one number is the
-- same for all heads. `x = w_output_share` asks whether a head's share of the output weights goes with what it does.
-- reads:   head_correlations(x=$x, y=$y, bootstrap=$bootstrap, seed=$seed)
-- needs:   head_weights if x in (w_query_norm, w_key_norm, w_value_norm, w_output_norm, w_output_share,
--          w_output_spectral, qk_norm, qk_spectral, qk_rank, ov_norm, ov_spectral, ov_rank, copying),
--          head_weights if y in (w_query_norm, w_key_norm, w_value_norm, w_output_norm, w_output_share,
--          w_output_spectral, qk_norm, qk_spectral, qk_rank, ov_norm, ov_spectral, ov_rank, copying),
--          output_norms if x in (output_norm, output_share),
--          ablated_zero if x=ablation_zero, ablated_uniform if x=ablation_uniform,
--          ablated_mean if x=ablation_mean,
--          importance_facts if x in (importance, importance_tokens),
--          output_norms if y in (output_norm, output_share),
--          ablated_zero if y=ablation_zero, ablated_uniform if y=ablation_uniform,
--          ablated_mean if y=ablation_mean,
--          importance_facts if y in (importance, importance_tokens)
-- params:  kind text = null,
--          x text in (confidence, entropy, cls, sep, previous, next, self, distance, w_query_norm, w_key_norm,
--          w_value_norm, w_output_norm, w_output_share, w_output_spectral, qk_norm, qk_spectral, qk_rank, ov_norm,
--          ov_spectral, ov_rank, copying, output_norm, output_share, ablation_zero, ablation_uniform, ablation_mean,
--          importance, importance_tokens) = confidence,
--          y text in (confidence, entropy, cls, sep, previous, next, self, distance, w_query_norm, w_key_norm,
--          w_value_norm, w_output_norm, w_output_share, w_output_spectral, qk_norm, qk_spectral, qk_rank, ov_norm,
--          ov_spectral, ov_rank, copying, output_norm, output_share, ablation_zero, ablation_uniform, ablation_mean,
--          importance, importance_tokens) = null,
--          bootstrap integer from 0 = 1000, seed integer from 0 = 0
-- returns: x, y, spearman [-1 to 1], low [of spearman; null without bootstrap], high, pearson [-1 to 1], n [heads]
-- source:  essay on transformer heads, section 2
-- paint:   bars(spearman, by=y, low=low, high=high), bars(pearson, by=y)
select x, y, spearman, low, high, pearson, n
from head_correlations
where kind = $kind
order by abs(spearman) desc nulls last, y
