-- Conditions `where=` of a question, which stand in `select example from examples where (…)`. Each must be refused or limited.

-- refused: a bracket that closes
1 = 1) union select 1 from (select 1
-- refused: a bracket that closes, and a comment
1 = 1); drop view words --
-- refused: another statement
true); copy (select 1) to '{folder}/stolen.csv'; select (1
-- refused: a comment that eats the bracket
true) --
-- refused: a comment that is left open
true /*
-- refused: a string that is left open
name = '
-- refused: a name that is left open
"
-- refused: dollars that are left open
name = $$
-- refused: dollars with a name that are left open
name = $a$
-- refused: a file
example in (select length(content) from read_text('/etc/passwd'))
-- refused: a file by its name
example in (from 'x.csv')
-- refused: a CTE that writes
example in (with x as (copy (select 1) to '{folder}/stolen.csv') from x)
-- refused: a setting
name = current_setting('threads')
-- refused: the user
name = current_user
-- refused: the catalogue
exists (from duckdb_views())
-- refused: the catalogue as a table
exists (from sqlite_master)
-- refused: a bracket that closes before the catalogue
false) union all select estimated_size from duckdb_tables() where (true
-- refused: a bracket that closes before an order
true) order by (select length(content) from read_text('/etc/passwd')) limit (1
-- refused: a bracket that closes before a window
true) qualify (select length(content) from read_text('/etc/passwd')) > (0
-- refused: a bracket that closes before a group
true) group by example having (getenv('HOME') is null
-- refused: stored tables
example in (select example from stored.examples)
-- refused: a query by a string
exists (from query('select 1'))
-- refused: waiting
sleep_ms(60000) is null
-- refused: nothing
)(
-- refused: a semicolon
true;
-- limited: two conditions
true, false
-- refused: an alias
true as x
-- limited: only white space

-- limited: only a comment
--true
-- refused: a table
examples where true
-- limited: a subquery that takes time
example in (select count(*) from range(1000000) a, range(1000000) b)
-- limited: a value that takes memory
length(repeat('x', 4000000000)) > 3
-- limited: a pattern that takes time
repeat(text, 100000) ~ '(a|aa)+b$'
-- limited: a constant that takes time while planning
levenshtein(repeat('a', 100000), repeat('b', 100000)) > 3
