-- Names that are written otherwise, or smuggled where nobody looks. Each must be refused.

-- refused: capitals
FROM DUCKDB_SETTINGS()
-- refused: capitals and small letters
select Current_Setting('threads')
-- refused: quotes
from "duckdb_settings"()
-- refused: quotes and capitals
from "DuckDB_Settings"()
-- refused: white space
from duckdb_settings
	(   )
-- refused: a comment inside
from duckdb_settings/* */()
-- refused: a comment that nests
from /* /* */ */ duckdb_settings()
-- refused: a comment to the end of the line
from -- words
duckdb_settings()
-- refused: white space of Unicode
from duckdb_settings ()
-- refused: escapes of Unicode, which DuckDB does not know
from U&"duckdb\005fsettings"()
-- refused: a schema
from main.duckdb_settings()
-- refused: a catalogue and a schema
from system.main.duckdb_settings()
-- refused: PostgreSQL's schema
select pg_catalog.pg_get_viewdef(1)
-- refused: a schema before a harmless function
select system.main.lower('A')
-- refused: a schema before a function that reads settings
select main.current_setting('threads')
-- refused: a method of a string
select 'x'.getenv()
-- refused: a method of a method
select 'a'.upper().getenv()
-- refused: a method of a column
select form.getvariable() from words
-- refused: a method of a list
select ['threads'].list_transform(lambda name: name.current_setting())
-- refused: a published name in another schema
from information_schema.words
-- refused: a published name in another catalogue
from system.words
-- refused: a published name in a catalogue and a schema
from memory.main.words
-- refused: a published name in the schema of stored tables
from stored.examples
-- refused: the schema of a recursion that is none
from recurring.words
-- refused: a recursion's name outside of it
with recursive t(n) using key (n) as (select 1 union select n + 1 from recurring.t where n < 3) from recurring.words
-- refused: a time
from words at (version => 1)
-- refused: a time of a table
from words at (timestamp => now())
-- refused: a CTE named as a view of the system
with duckdb_tables as (select 1) from duckdb_tables
-- refused: a CTE named as a view of the system, after it was read
with a as (from duckdb_views), duckdb_views as (select 1) from a
-- refused: a CTE named as a view of the system in a subquery, and the view outside
select * from (with duckdb_views as (select 1 sql) from duckdb_views), duckdb_views
-- refused: a CTE named as sqlite_master
with sqlite_master as (select 1) select * from main.sqlite_master
-- refused: a CTE named as pg_class
with pg_class as (select 1) from pg_class
-- refused: a CTE that is read before it is defined
with a as (from b), b as (select 1) from a
-- refused: a CTE that reads itself without being recursive
with a as (from a) from a
-- refused: a CTE of a subquery read outside of it
select * from (with hidden as (select 1) from hidden), hidden
-- refused: a CTE of a CTE read outside of it
with a as (with hidden as (select 1) from hidden) from a, hidden
-- refused: a CTE of one arm of a union read in the other
(with hidden as (select 1) from hidden) union all (from hidden)
-- refused: a CTE behind a schema
with own as (select 1) from main.own
-- refused: a name of two CTEs in one list
with stored as (select 1), x as (from stored.words) from x
-- refused: a system view behind an alias
select w.sql from duckdb_views as w
-- refused: a system view in USING
from words join duckdb_columns using (column_name)
-- refused: a system view in a semi join
from words semi join duckdb_tables on true
-- refused: a system view in a positional join
from words positional join duckdb_views()
-- refused: a system view in an ASOF join
from words asof join duckdb_tables on word >= estimated_size
-- refused: a system view in PIVOT
pivot duckdb_tables on schema_name in ('main') using count(*)
-- refused: a system view in UNPIVOT
unpivot duckdb_databases on path into name n value v
-- refused: PIVOT over a type
from words pivot (count(*) for upos in mood)
-- refused: PIVOT without values, which is several statements
pivot words on upos using count(*)
-- refused: a system view in DESCRIBE
describe duckdb_settings()
-- refused: a system view in DESCRIBE, in FROM
from (describe duckdb_views)
-- refused: a system view in SUMMARIZE
summarize duckdb_views
-- refused: a system view in SUMMARIZE of a query
from (summarize select sql from duckdb_views())
-- refused: a system view in the key of a recursion
with recursive t(n) using key (n) as (select 1 union (select count(*) from duckdb_views())) from t
-- refused: a system view in the first part of a recursion
with recursive t(sql) as (select sql from duckdb_views() union all select sql from t where false) from t
-- refused: a system view in COLUMNS
select columns(lambda c: c in (select column_name from duckdb_columns())) from words
-- refused: a system view in REPLACE
select * replace ((select min(sql) from duckdb_views()) as form) from words
-- refused: a system view in GROUP BY
select count(*) from words group by (select min(sql) from duckdb_views())
-- refused: a system view in DISTINCT ON
select distinct on ((select min(sql) from duckdb_views())) form from words
-- refused: a system view in a frame
select sum(word) over (rows between (select count(*) from duckdb_views()) preceding and current row) from words
-- refused: a system view in a sample of a table
from words tablesample reservoir (select count(*) from duckdb_views())
-- refused: a system view in OFFSET
from words offset (select count(*) from duckdb_views())
-- refused: a system view in a CASE
select case when true then (select min(sql) from duckdb_views()) end
-- refused: a system view in BETWEEN
select 1 between 0 and (select count(*) from duckdb_views())
-- refused: a system view in an ARRAY subquery
select array(select sql from duckdb_views())
-- refused: a system view in a struct
select {'a': (select min(sql) from duckdb_views())}
-- refused: a system view in a comprehension
select [x for x in (select list(sql) from duckdb_views())]
-- refused: a system view in the argument of a table function
from range((select count(*) from duckdb_views()))
-- refused: a system view in the argument of unnest
from unnest((select list(sql) from duckdb_views()))
-- refused: a system view in an order of an aggregate
select list(form order by (select min(sql) from duckdb_views())) from words
-- refused: a system view in VALUES
from (values ((select min(sql) from duckdb_views()))) t(a)
-- refused: a function that is refused in an order of an aggregate
select list(form order by current_setting('threads')) from words
-- refused: a function that is refused in the arguments of a table function
from range(len(current_setting('threads')))
-- refused: a function that is refused in JSON
select json_object('a', current_setting('threads'))
-- refused: a window that is none
select current_setting('threads') over ()
-- refused: an aggregate that is none
select list_transform([1], lambda x: getvariable('x'))
-- refused: a placeholder for a table
from $1
-- refused: a placeholder for a name
from identifier('words')
-- refused: an aggregate that is not in the list, told by its name
select list_aggregate([9223372036854775807, 9223372036854775807], 'sum_no_overflow')
-- refused: the same as a method of a list
select [9223372036854775807].list_aggr('sum_no_overflow')
-- refused: the same as a method of a column
select form.array_aggregate('reservoir_quantile', 0.5, 2147483647) from words
-- refused: an aggregate whose name comes later
select list_aggregate([1], lower('SUM'))
-- refused: a sample so large that DuckDB ends
select reservoir_quantile(n_words, 0.5, 2147483647) from examples
