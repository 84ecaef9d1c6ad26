-- The catalogue, the environment, the session. Each must be refused.

-- refused: tables
from duckdb_tables()
-- refused: tables as a view
from duckdb_tables
-- refused: views with their SQL, which names files
select sql from duckdb_views()
-- refused: views as a view
select sql from duckdb_views
-- refused: databases
from duckdb_databases()
-- refused: databases as a view
select path from duckdb_databases
-- refused: columns
from duckdb_columns()
-- refused: schemas
from duckdb_schemas()
-- refused: functions
from duckdb_functions()
-- refused: extensions and where they lie
from duckdb_extensions()
-- refused: memory
from duckdb_memory()
-- refused: temporary files
from duckdb_temporary_files()
-- refused: logs
from duckdb_logs()
-- refused: logs as a view
from duckdb_logs
-- refused: logs taken apart
from duckdb_logs_parsed('QueryLog')
-- refused: connections
from duckdb_connection_count()
-- refused: constraints
from duckdb_constraints()
-- refused: indexes
from duckdb_indexes()
-- refused: dependencies
from duckdb_dependencies()
-- refused: types
from duckdb_types()
-- refused: files that were read
from duckdb_external_file_cache()
-- refused: the optimizers
from duckdb_optimizers()
-- refused: information_schema.tables
from information_schema.tables
-- refused: information_schema.columns
select * from information_schema.columns
-- refused: information_schema with a catalogue
from system.information_schema.tables
-- refused: pg_catalog.pg_class
from pg_catalog.pg_class
-- refused: pg_class alone
from pg_class
-- refused: pg_tables
from pg_tables
-- refused: pg_views, with their SQL
select definition from pg_views
-- refused: sqlite_master
from sqlite_master
-- refused: sqlite_schema
from sqlite_schema
-- refused: sqlite_temp_master
from sqlite_temp_master
-- refused: pragma_database_list
from pragma_database_list
-- refused: pragma_table_info
from pragma_table_info('words')
-- refused: pragma_storage_info
from pragma_storage_info('words')
-- refused: pragma_database_size
from pragma_database_size()
-- refused: pragma_version
from pragma_version()
-- refused: pragma_platform
from pragma_platform()
-- refused: pragma_user_agent
from pragma_user_agent()
-- refused: pragma_metadata_info
from pragma_metadata_info()
-- refused: SHOW TABLES
show tables
-- refused: SHOW ALL TABLES
show all tables
-- refused: SHOW DATABASES
show databases
-- refused: SHOW SCHEMAS
show schemas
-- refused: SHOW VARIABLES
show variables
-- refused: SHOW of a setting
show memory_limit
-- refused: SHOW in FROM
from (show tables)
-- refused: SHOW ALL in FROM
select * from (show all tables)
-- refused: DESCRIBE of nothing
describe
-- refused: an environment variable
select getenv('HOME')
-- refused: an environment variable in a macro's name
select "getenv"('SECRET')
-- refused: the statement itself
select current_query()
-- refused: the database
select current_database()
-- refused: the schema
select current_schema()
-- refused: the schema without brackets
select current_schema
-- refused: the search path
select current_schemas(true)
-- refused: the catalogue without brackets
select current_catalog
-- refused: the user
select current_user
-- refused: the user in capitals
select CURRENT_USER
-- refused: the user, short
select user
-- refused: the role
select current_role
-- refused: the session's user
select session_user
-- refused: the user in WHERE
select form from words where current_user = 'duckdb'
-- refused: the connection
select current_connection_id()
-- refused: the transaction
select txid_current()
-- refused: the transaction's number
select current_transaction_id()
-- refused: the address of the server
select inet_server_addr()
-- refused: a view's SQL
select pg_get_viewdef(1)
-- refused: a table's columns
select col_description(1, 1)
-- refused: when the server started
select pg_postmaster_start_time()
-- refused: whether a table may be read
select has_table_privilege('words', 'select')
-- refused: how a column is stored
select stats(form) from words
-- refused: how a vector is held
select vector_type(form) from words
-- refused: made-up tables of the tests of DuckDB
from test_all_types()
-- refused: vectors of the tests of DuckDB
from test_vector_types(null::int)
-- refused: time zones as files
from pg_timezone_names()
-- refused: the plan of a statement
select json_serialize_plan('select * from words')
-- refused: a statement as JSON
select json_serialize_sql('select 1')
-- refused: JSON as a statement
select json_deserialize_sql(json_serialize_sql('select 1'))
-- refused: tables that a store keeps aside
from stored.words
-- refused: tables that are held
from held.stored.words
-- refused: temporary tables
from temp.main.words
-- refused: temporary tables of a statement that was narrowed
from "computed before 1"
-- refused: a table while it is loaded
from loading
-- refused: the catalogue through COLUMNS
select columns(*) from duckdb_views()
-- refused: the catalogue by a star
select v.* from duckdb_views() v
