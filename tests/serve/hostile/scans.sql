-- Names of tables that DuckDB would look for elsewhere: files, addresses, Python's variables. Each must be refused.

-- refused: a CSV by its name
from '/etc/passwd.csv'
-- refused: a CSV in quotes of a name
from "/etc/passwd.csv"
-- refused: Parquet of the store
from '{folder}/segments/000000/words.parquet'
-- refused: Parquet of the file layer
from 'attn://0000000000000000/segments/000000/words.parquet'
-- refused: a pattern
from '{folder}/**/*.parquet'
-- refused: JSON
from '{folder}/store.json'
-- refused: a database
from '{folder}/x.duckdb'
-- refused: an address
from 'https://example.org/x.parquet'
-- refused: a bucket
from 's3://bucket/x.parquet'
-- refused: a data set of a hub
from 'hf://datasets/x/y.parquet'
-- refused: a file behind another
from words join 'x.csv' on true
-- refused: a file behind a comma
from words, 'x.csv'
-- refused: a file in a subquery
select (select count(*) from 'x.csv')
-- refused: a file in TABLE
table 'x.csv'
-- refused: a file in DESCRIBE
describe '{folder}/store.json'
-- refused: a file in DESCRIBE of a table
describe table 'x.csv'
-- refused: a file in SUMMARIZE
summarize 'x.parquet'
-- refused: a file in PIVOT
pivot 'x.csv' on a in (1) using count(*)
-- refused: a file in UNPIVOT
unpivot 'x.csv' on a into name n value v
-- refused: a file that a CTE is named after
with "x.csv" as (select 1) from "x.csv"
-- refused: an address that a CTE is named after
with "https://example.org/x.parquet" as (select 1) from "https://example.org/x.parquet"
-- refused: a file read before a CTE of its name is defined
with a as (from "x.parquet"), "x.parquet" as (select 1) from a
-- refused: a file that a subquery's CTE is named after, outside of it
select * from (with f as (select 1) from f), "f.csv"
-- refused: a variable of Python
from contents
-- refused: another
from store
-- refused: one of an outer frame
from request
-- refused: a module
from os
-- refused: what Python scans
from python_arrow_scan(1)
-- refused: a data frame by its address
from pandas_scan(140000000000000::pointer)
-- refused: Arrow by its address
from arrow_scan(1::pointer, 2::pointer, 3::pointer)
-- refused: Arrow by its address, the plain way
from arrow_scan_dumb(1::pointer, 2::pointer, 3::pointer)
-- refused: a function of Python over rows
from python_map_function(1)
-- refused: a table by the way it is scanned
from seq_scan(words)
