-- Files, read or written by a function or by COPY and its kin. Each must be refused.

-- refused: text of a file of the system
select * from read_text('/etc/passwd')
-- refused: bytes of a file
select * from read_blob('/etc/hostname')
-- refused: a CSV that is none
select * from read_csv('/etc/passwd', delim = ':', header = false)
-- refused: the same without a call's usual name
from read_csv_auto('/etc/passwd')
-- refused: JSON
from read_json('{folder}/store.json')
-- refused: JSON objects
from read_json_objects('{folder}/store.json')
-- refused: newline-delimited JSON
from read_ndjson('{folder}/store.json')
-- refused: JSON in any case of letters
from READ_JSON_AUTO('{folder}/store.json')
-- refused: Parquet of the store itself
from read_parquet('{folder}/segments/*/words.parquet')
-- refused: Parquet by the name that the file layer knows
from read_parquet('attn://0000000000000000/segments/000000/words.parquet')
-- refused: Parquet by its other name
from parquet_scan('{folder}/segments/*/words.parquet')
-- refused: a footer
from parquet_metadata('{folder}/segments/*/words.parquet')
-- refused: a schema
from parquet_schema('{folder}/segments/*/words.parquet')
-- refused: key-value pairs of a footer
from parquet_kv_metadata('{folder}/segments/*/words.parquet')
-- refused: a footer whole
from parquet_full_metadata('{folder}/segments/*/words.parquet')
-- refused: a file's footer
from parquet_file_metadata('{folder}/segments/*/words.parquet')
-- refused: bloom filters
from parquet_bloom_probe('{folder}/segments/*/words.parquet', 'form', 'the')
-- refused: names of files
from glob('/etc/*')
-- refused: names of files of the file layer
from glob('attn://**')
-- refused: a guess at a CSV
from sniff_csv('/etc/passwd')
-- refused: another database
from read_duckdb('{folder}/other.duckdb', table_name = 't')
-- refused: one file at a time
from read_single_csv_file('/etc/passwd')
-- refused: one Parquet file at a time
from read_single_parquet_file('{folder}/x.parquet')
-- refused: the environment as a file
select content from read_text('/proc/self/environ')
-- refused: memory of the process
select content from read_blob('/proc/self/maps')
-- refused: open files of the process
from glob('/proc/self/fd/*')
-- refused: standard input
from read_text('/dev/stdin')
-- refused: a file in a scalar subquery
select (select content from read_text('/etc/passwd'))
-- refused: a file in WHERE
select form from words where form in (select content from read_text('/etc/passwd'))
-- refused: a file in ORDER BY
select form from words order by (select content from read_text('/etc/passwd'))
-- refused: a file in LIMIT
select form from words limit (select length(content) from read_text('/etc/passwd'))
-- refused: a file in a lateral join
from words, lateral (select content from read_text('/etc/passwd')) t
-- refused: a file through a lambda
select list_transform(['/etc/passwd'], lambda name: (select content from read_text(name)))
-- refused: a file in a CTE
with secret as (from read_text('/etc/passwd')) from secret
-- refused: a file in a CTE of a CTE
with a as (with b as (from read_text('/etc/passwd')) from b) from a
-- refused: a file in one arm of a union
select form from words union all select content from read_text('/etc/passwd')
-- refused: a file in a recursive CTE
with recursive t(x) as (select '' union all select content from read_text('/etc/passwd'), t where x = '') from t
-- refused: a file in FILTER
select count(*) filter (where form = (select content from read_text('/etc/passwd'))) from words
-- refused: a file in QUALIFY
select form from words qualify row_number() over () = (select length(content) from read_text('/etc/passwd'))
-- refused: a file in a window's order
select rank() over (order by (select content from read_text('/etc/passwd'))) from words
-- refused: a file in HAVING
select count(*) from words having count(*) > (select length(content) from read_text('/etc/passwd'))
-- refused: a file in a join condition
from words join examples on (select length(content) from read_text('/etc/passwd')) > 0
-- refused: a file in a list of values
values ((select content from read_text('/etc/passwd')))
-- refused: a file in DESCRIBE
describe select * from read_csv('/etc/passwd')
-- refused: a file in SUMMARIZE
summarize select * from read_csv('/etc/passwd')
-- refused: a file in PIVOT
pivot (from read_csv('/etc/passwd', header = false)) on column0 in ('root') using count(*)
-- refused: a file in the values of PIVOT
pivot words on upos in (select content from read_text('/etc/passwd')) using count(*)
-- refused: a file in UNPIVOT
unpivot (from read_text('/etc/passwd')) on content into name n value v
-- refused: a file's size by EXISTS
select exists(from read_text('/etc/shadow'))
-- refused: a file in a sample
select * from (from read_text('/etc/passwd')) using sample 1
-- refused: a remote file
from read_csv('https://example.org/x.csv')
-- refused: the service of a cloud for its own machines
from read_text('http://169.254.169.254/latest/meta-data/')
-- refused: COPY of a query
copy (select 1) to '{folder}/stolen.csv'
-- refused: COPY of a table
copy words to '{folder}/stolen.parquet' (format parquet)
-- refused: COPY into a table
copy words from '/etc/passwd'
-- refused: COPY over a file of the file layer
copy (select 1) to 'attn://0000000000000000/segments/000000/words.parquet'
-- refused: COPY of a database
copy from database memory to temp
-- refused: EXPORT
export database '{folder}/export'
-- refused: IMPORT
import database '{folder}/export'
-- refused: ATTACH
attach '{folder}/new.duckdb'
-- refused: ATTACH in memory
attach ':memory:' as other
-- refused: DETACH
detach memory
-- refused: INSTALL
install httpfs
-- refused: INSTALL from a place
install sqlite from '{folder}'
-- refused: LOAD of a file
load '{folder}/evil.duckdb_extension'
-- refused: UPDATE EXTENSIONS, of which the bindings know no type
update extensions
-- refused: CONNECT, likewise
connect 'x'
-- refused: LOAD after a SELECT
select 1; load httpfs
