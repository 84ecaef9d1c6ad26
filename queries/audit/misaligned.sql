-- Which words have no tokens of their own: `shared` with another word, or `none` at all.
-- reads:   words, examples
-- params:  limit integer from 0 = 100
-- returns: example, name, side, word, form, aligned [shared; none], n_tokens
-- source:  the store's own tables
select w.example, e.name, w.side, w.word, w.form, w.aligned, w.n_tokens
from words as w
join examples as e using (example)
where w.aligned <> 'exact'
order by w.example, w.side, w.word
limit $limit
