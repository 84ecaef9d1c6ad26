-- Settings, variables, sessions, secrets. Each must be refused.

-- refused: SET
set memory_limit = '100GB'
-- refused: SET GLOBAL
set global threads = 64
-- refused: SET SESSION
set session max_execution_time = 0
-- refused: SET LOCAL
set local threads = 64
-- refused: RESET
reset memory_limit
-- refused: external access on again
set enable_external_access = true
-- refused: the lock off again
set lock_configuration = false
-- refused: a folder for temporary files
set temp_directory = '{folder}'
-- refused: a folder of secrets
set secret_directory = '{folder}'
-- refused: a folder that is allowed
set allowed_directories = ['/']
-- refused: SET VARIABLE
set variable x = (select content from read_text('/etc/passwd'))
-- refused: RESET VARIABLE
reset variable x
-- refused: SET search_path
set search_path = 'stored'
-- refused: SET schema
set schema = 'stored'
-- refused: USE
use stored
-- refused: SET TIME ZONE
set timezone = 'UTC'
-- refused: PRAGMA
pragma database_list
-- refused: PRAGMA with a value
pragma memory_limit = '100GB'
-- refused: PRAGMA of a table
pragma table_info('words')
-- refused: PRAGMA of storage
pragma storage_info('words')
-- refused: PRAGMA of the version
pragma version
-- refused: PRAGMA that writes
pragma enable_profiling = 'json'
-- refused: PRAGMA that goes on in a SELECT
pragma show_tables; select 1
-- refused: CALL
call duckdb_settings()
-- refused: CALL of a pragma
call pragma_version()
-- refused: a setting
select current_setting('allowed_directories')
-- refused: a setting in a list
select list_transform(['threads'], lambda name: current_setting(name))
-- refused: a setting by method
select 'threads'.current_setting()
-- refused: all settings
from duckdb_settings()
-- refused: all settings as PostgreSQL has them
from pg_settings
-- refused: a variable
select getvariable('x')
-- refused: all variables
from duckdb_variables()
-- refused: secrets
from duckdb_secrets(redact = false)
-- refused: which secret
from which_secret('s3://x', 's3')
-- refused: types of secrets
from duckdb_secret_types()
-- refused: PREPARE
prepare p as select 1
-- refused: EXECUTE
execute p
-- refused: DEALLOCATE
deallocate p
-- refused: prepared statements
from duckdb_prepared_statements()
-- refused: EXPLAIN
explain select * from words
-- refused: EXPLAIN ANALYZE
explain analyze select * from words
-- refused: the seed of random numbers
select setseed(0.5)
-- refused: a sequence
select nextval('s')
-- refused: a sequence's last number
select currval('s')
-- refused: waiting
select sleep_ms(60000)
-- refused: waiting as in PostgreSQL
select pg_sleep(60)
-- refused: waiting in a constant of WHERE
select 1 where sleep_ms(60000) is null
-- refused: LISTEN is no statement of DuckDB
listen x
