-- How much each head's maps differ between two stores of the same texts, example by example.
--
-- `cosine` is that of the flattened maps, special tokens and diagonal included; `js` and `tv` are means over query rows
-- of the Jensen-Shannon divergence of the two rows, smoothed with eps, and of half the sum of |a - b|. All are means
-- over pairs of examples. `token` compares maps over equal tokens, `word` maps between equal words, for models whose
-- tokenizers differ: there special tokens are left out without renormalising, so that rows sum to less than 1.
--
-- The weights are those stored, rounded as their stores say. The paper's code flattens maps padded to 200 x 200, whose
-- padded rows enter the cosine; stores keep no such rows, so that its numbers are not to be had here.
-- reads:   map_differences(kind=$kind, level=$level, eps=$eps)
-- params:  kind text = null, level text in (token, word) = token, eps real = 0.001
-- returns: layer, head, cosine [0-1], js [nats, 0-0.693], tv [0-1], n [pairs of examples]
-- source:  Kovaleva et al. 2019, section 4.3, Figure 5
-- paint:   cosine, layers(cosine)
select layer, head, avg(cosine) as cosine, avg(js) as js, avg(tv) as tv, count(*) as n
from map_differences
group by layer, head
order by layer, head
