-- Joins, groups, windows, subqueries and shapes of tables, as researchers write them.

-- a table
from words
-- columns, conditions, order, limit
select form, upos, deprel from words where example = 0 and form is not null order by word limit 5
-- a schema that is the default
select main.words.form from main.words order by all
-- a join
select e.name, count(*) n from words w join examples e using (example) group by e.name order by n desc, e.name
-- a left join
select w.form, g.form governor from words w left join words g on g.example = w.example and g.word = w.governor order by w.example, w.word
-- a semi join and an anti join
select count(*) from words semi join examples using (example) union all select count(*) from words anti join examples using (example)
-- a positional join
select * from (select form from words order by example, word limit 3) positional join (select text from tokens order by example, token limit 3)
-- an ASOF join
select a.x, b.y from (values (1), (5), (9)) a(x) asof join (values (0), (4), (8)) b(y) on a.x >= b.y order by 1
-- a cross join
select count(*) from heads a, heads b where a.layer < b.layer
-- a lateral join
select e.example, longest from examples e, lateral (select max(length(form)) longest from words w where w.example = e.example) order by all
-- a natural join
select count(*) from (select example, word, form from words) natural join (select example, word, upos from words)
-- a correlated subquery
select name, (select count(*) from words w where w.example = e.example) n from examples e order by name
-- EXISTS, IN, ANY, ALL
select form from words w where exists (from tokens t where t.example = w.example) and word in (select 0) and word = any (select 0) and word >= all (select 0) order by all
-- a CTE
with long as (select * from words where length(form) > 4) select count(*), max(form) from long
-- CTEs that use one another
with a as (select example, count(*) n from words group by all), b as materialized (select max(n) m from a) select a.* from a, b where n = m order by all
-- a CTE inside a CTE
with a as (with b as (select form from words) select upper(form) f from b) select min(f), max(f) from a
-- a CTE that hides a published table
with words as (select 'hidden' form) from words
-- a CTE of the same name inside
with a as (select 1 x) select * from (with a as (select 2 x) from a) union all from a order by x
-- CTEs named as tables of other schemas
with columns as (select 1 a), tables as (select 2 b) from columns, tables
-- CTEs in capitals
with Long AS (select 1 a) select A from LONG
-- a recursion
with recursive up(example, word, root, depth) as (
    select example, word, word, 0 from words where governor is null
    union all
    select w.example, w.word, up.root, depth + 1 from words w join up on w.example = up.example and w.governor = up.word
)
select depth, count(*) n from up group by depth order by depth
-- a recursion with a key
with recursive t(k, n) using key (k) as (select 1, 1 union select k, n + 1 from t where n < 10) from t
-- a recursion with a key that reads what it has
with recursive t(k, n) using key (k) as (select 1, 1 union select t.k, r.n + 1 from t join recurring.t r using (k) where r.n < 5) from t
-- a window
select example, word, form, lag(form) over (partition by example order by word) before from words order by 1, 2
-- windows with a name and a frame
select word, avg(length(form)) over w from words window w as (partition by example order by word rows between 1 preceding and 1 following exclude current row) order by example, word
-- QUALIFY
select example, form from words qualify row_number() over (partition by example order by length(form) desc, word) = 1 order by example
-- GROUP BY ALL and ORDER BY ALL
select upos, deprel, count(*) n from words group by all order by all
-- ROLLUP, CUBE, GROUPING SETS
select example, derived, grouping(example, derived) g, count(*) n from words group by grouping sets ((example), (derived), ()) order by all
-- CUBE
select layer, head, count(*) from heads group by cube (layer, head) order by all
-- FILTER
select count(*) filter (where word = 0) first, count(*) every from words
-- HAVING
select form, count(*) n from words group by form having n > 1 order by n desc, form
-- DISTINCT and DISTINCT ON
select distinct on (example) example, form from words order by example, word
-- UNION BY NAME
select form, example from words union all by name select example, name from examples order by all
-- INTERSECT and EXCEPT
(select example from words intersect select example from examples) except select 1 order by 1
-- EXCLUDE, REPLACE, RENAME
select * exclude (lemma, xpos) replace (lower(form) as form) rename (upos as tag) from words order by example, word
-- COLUMNS
select min(columns(lambda c: c like '%word%')) from words
-- COLUMNS by a pattern
select max(columns('^(layer|head)$')) from heads
-- PIVOT with its values
pivot (select layer, head, kind from heads) on layer in (0, 1) using count(*) group by head order by head
-- PIVOT as SQL has it
select * from (select head, layer from heads) pivot (count(*) for layer in (0, 1)) order by all
-- UNPIVOT
unpivot (select example, n_tokens, n_words from examples) on n_tokens, n_words into name number value n order by all
-- DESCRIBE
describe words
-- DESCRIBE of a query
describe select form, length(form) n from words
-- DESCRIBE in FROM
select column_name from (describe heads) order by column_name
-- SUMMARIZE
select column_name, column_type, "count" from (summarize heads)
-- a sample that takes everything
select count(*) from words tablesample 100%
-- a sample of rows
select count(*) from (from words using sample 3 rows)
-- VALUES
values (1, 'a'), (2, 'b')
-- a table of values
select a + b from (values (1, 2), (3, 4)) t(a, b)
-- numbers
select range * 2 from range(5)
-- a series of times
select * from generate_series(date '2024-01-01', date '2024-01-03', interval 1 day)
-- rows of a list
select unnest(string_split(text, ' ')) w from examples order by all
-- rows of a list in FROM
select e.example, w from examples e, unnest(string_split(e.text, ' ')) t(w) order by all
-- places of a list
select generate_subscripts([4, 5, 6], 1)
-- a struct in columns
select unnest({'a': 1, 'b': 'x'})
-- FROM first
from words select upos, count(*) n group by upos order by n desc, upos
-- TABLE
table heads order by all
-- an alias before its expression
select n: count(*), longest: max(length(form)) from words
-- an alias that is used again
select length(form) as n, n * 2 as twice from words order by all
-- comments and a semicolon
select /* words */ count(*) -- all of them
from words;
-- columns that are called as values of SQL are, with their tables
select t."user", t."current_user" from (select 1 as "user", 2 as "current_user") t
-- OFFSET and a percentage
select example from examples order by example limit 50% offset 1
