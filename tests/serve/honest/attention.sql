-- Weights and facts, as researchers ask for them.

-- a head's weights
select query, key, weight from attention where example = 0 and layer = 1 and head = 2 order by query, key
-- the mean of each head
select layer, head, round(avg(weight), 5) from attention group by all order by all
-- the most attended token of each token
select query, arg_max(key, weight) k, round(max(weight), 5) w from attention where example = 1 and layer = 0 and head = 0 group by query order by query
-- tokens by their text
select q.text query, k.text key, round(a.weight, 5) from attention a join tokens q on q.example = a.example and q.token = a.query join tokens k on k.example = a.example and k.token = a.key where a.example = 0 and a.layer = 0 and a.head = 0 order by a.query, a.key
-- examples that a subquery picks
select layer, head, count(*) from attention where example in (select example from examples where text like '%map%') group by all order by all
-- heads that a CTE picks
with picked(layer, head) as (values (0, 1), (1, 2)) select layer, head, round(sum(weight), 3) from attention join picked using (layer, head) group by all order by all
-- weights between words
select query, key, round(weight, 5) from word_attention where example = 0 and layer = 1 and head = 1 order by all
-- words and their governors
select layer, head, round(avg(a.weight), 5) w from word_attention a join words d on d.example = a.example and d.word = a.query and d.governor = a.key group by all order by w desc, layer, head limit 3
-- how often the head of a word is the most attended
select f.layer, f.head, count(*) filter (where f.attends_to = w.governor) n from word_facts f join words w using (example, word) group by all order by all
-- entropies
select layer, head, round(sum(entropy_sum) / sum(n_queries), 4) entropy from head_facts group by all order by entropy, layer, head
-- weights to the left and to the right
select layer, head, round(sum(weight) filter (where key < query), 4) l, round(sum(weight) filter (where key > query), 4) r from attention group by all order by all
-- two heads compared
select round(corr(a.weight, b.weight), 4) from attention a join attention b using (example, kind, query, key) where a.layer = 0 and a.head = 0 and b.layer = 1 and b.head = 0
-- rows that sum to one
select max(abs(s - 1)) < 0.01 from (select sum(weight) s from attention group by example, layer, head, query)
-- a parameter
select count(*) from attention where example = $example and layer = $layer
-- a list as a parameter
select example, count(*) from words where example in (select unnest($examples)) group by all order by all
