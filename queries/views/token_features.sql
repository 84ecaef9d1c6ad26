-- One row for each token and linguistic feature that its word has (see `word_features`), and CLS, SEP.
select f.example, f.side, t.token, f.word, f.feature
from word_features as f
join tokens as t using (example, side, word)
union all
select example, side, token, null, upper(special)
from tokens
where special in ('cls', 'sep')
