-- Statements and tables that are named by a string. Each must be refused.

-- refused: query()
from query('select * from duckdb_settings()')
-- refused: query() of something harmless
from query('from words')
-- refused: query() of a string that is put together
from query('from read_te' || 'xt(''/etc/passwd'')')
-- refused: query() with a parameter
from query($text)
-- refused: query_table()
from query_table('duckdb_settings')
-- refused: query_table() of several
from query_table(['words', 'examples'])
-- refused: query_table() in lateral
from words, lateral query_table(form)
-- refused: a serialized statement
from json_execute_serialized_sql('{"statements": []}')
-- refused: a serialized statement by PRAGMA
pragma json_execute_serialized_sql('{"statements": []}')
-- refused: a serialized statement by CALL
call json_execute_serialized_sql(json_serialize_sql('select 1'))
-- refused: query() in capitals and quotes
from "QUERY"('select 1')
-- refused: query() with a schema
from main.query('select 1')
-- refused: query() with a catalogue
from system.main.query('select 1')
-- refused: query() in a subquery of a condition
select 1 where exists (from query('select 1'))
-- refused: the type that a string names
select make_type('int')
-- refused: a cast to the type that a string names
select cast_to_type('1', null::int)
-- refused: a type behind a schema
select 1::main.mood
-- refused: a type behind a catalogue
select 1::system.main.int
-- refused: a type in a struct behind a schema
select null::struct(a main.mood)
-- refused: a state of an aggregate made by hand
select finalize('x'::blob)
-- refused: states of aggregates combined
select combine(1, 2)
-- refused: a lambda called by a function
select invoke(lambda x: x, 1)
-- refused: sort keys
select create_sort_key(form, 'asc') from words
-- refused: what the optimizer writes
select __internal_compress_string_hugeint(form) from words
-- refused: a barrier of the optimizer
select __internal_barrier(1)
-- refused: a macro of tables
from histogram('words', 'form')
-- refused: a macro of tables with values
from histogram_values(words, form)
-- refused: a summary
from summary((from words))
-- refused: rows repeated by a table function
from repeat(1, 1000000000000)
-- refused: rows repeated
from repeat_row(1, 2, num_rows = 1000000000000)
-- refused: resources outside
from register_external_resource('x')
