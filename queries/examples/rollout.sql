-- How much of each input token reaches each output token of one example, through all layers.
--
-- Maps of one layer are combined over heads (rows of the largest or least weights are divided by their sum), mixed
-- with the identity for the residual stream, and multiplied, later layers from the left. Cross maps have no rows here.
--
-- The identity's share is `residual`, or with `mixing = measured` what each layer was measured to keep of each token: 1
-- less AttnResLn-N of norms/mixing, or AttnRes-N in models without a norm of the sum.
-- reads:   rollout_facts(example=$example, heads=$heads, residual=$residual, mixing=$mixing), tokens
-- needs:   mixing_facts if mixing=measured
-- params:  example integer, kind text = null, heads text in (mean, max, min) = mean, residual real = 0.5,
--          mixing text in (fixed, measured) = fixed
-- returns: query, query_text, key, key_text, weight [0-1]
-- source:  Abnar and Zuidema 2020 (rollout)
-- paint:   matrix(weight, query, key, row_name=query_text, column_name=key_text)
select r.query, q.text as query_text, r.key, k.text as key_text, r.weight
from rollout_facts as r
join (select distinct kind, queries, keys from heads) as h using (kind)
join tokens as q on q.example = r.example and q.token = r.query and q.side = h.queries
join tokens as k on k.example = r.example and k.token = r.key and k.side = h.keys
where r.kind = $kind and r.example = $example
order by r.query, r.key
