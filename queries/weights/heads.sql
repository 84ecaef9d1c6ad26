-- How large each head's weights are, how many directions they use, and whether what it moves is a copy.
--
-- Norms are Frobenius norms, `spectral` the largest singular value, `rank` the effective rank (sum of singular
-- values)^2 / sum of squares. `copying` is the sum of the real parts of the eigenvalues of W_V W_O over the sum of
-- their moduli: 1 for a head that hands on what it reads, -1 for one that hands on its negative; it and the trace are
-- null for cross-attention, which reads one stream and writes to another. `w_output_share` is the norm of W_O as a
-- share of the sum over the layer's heads. Matrices are as the model holds them: biases, gains of norms and the scale
-- of the scores are left out. Where queries and keys could not be told apart, what needs them is null; where
-- `qk_bilinear` is false, scores are more than W_Q W_K^T (turned by position, or a bias of positions). Heads of one
-- `kv_head` share W_K and W_V, and layers of one `param_group` have equal numbers.
-- reads:   head_weights
-- needs:   head_weights
-- params:  kind text = null
-- returns: layer, head, kv_head, param_group, w_query_norm, w_query_spectral, w_key_norm, w_key_spectral, w_value_norm,
--          w_value_spectral, w_output_norm, w_output_spectral, w_output_share [0-1], qk_norm, qk_spectral,
--          qk_rank [1 to size of a head], qk_bilinear, ov_norm, ov_spectral, ov_rank [1 to size of a head], ov_trace,
--          copying [-1 to 1]
-- source:  Elhage et al. 2021; essay on transformer heads, section 2
-- paint:   w_output_share, grid(copying), grid(ov_norm), grid(qk_norm), grid(ov_rank), layers(w_output_norm),
--          scatter(ov_norm, copying)
select
    layer, head, kv_head, param_group, w_query_norm, w_query_spectral, w_key_norm, w_key_spectral, w_value_norm,
    w_value_spectral, w_output_norm, w_output_spectral, w_output_share, qk_norm, qk_spectral, qk_rank, qk_bilinear,
    ov_norm, ov_spectral, ov_rank, ov_trace, copying
from head_weights
where kind = $kind
order by layer, head
