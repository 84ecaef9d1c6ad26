-- Statements that write: most of them stand in a CTE, where DuckDB counts them as reading. Each must be refused.

-- refused: COPY in a CTE
with x as (copy (select 1) to '{folder}/stolen.csv') select * from x
-- refused: COPY in a CTE that is materialized
with x as materialized (copy (select 1) to '{folder}/stolen.csv') select * from x
-- refused: COPY in a CTE that nobody reads
with x as (copy (select 1) to '{folder}/stolen.csv') select 1
-- refused: COPY in a CTE of a CTE
with y as (with x as (copy (select 1) to '{folder}/stolen.csv') from x) from y
-- refused: COPY in a CTE of a subquery
select * from (with x as (copy (select 1) to '{folder}/stolen.csv') from x)
-- refused: COPY in a CTE of a scalar subquery
select (with x as (copy (select 1) to '{folder}/stolen.csv') select count(*) from x)
-- refused: COPY over a file of the store
with x as (copy (select 1 a) to '{folder}/segments/000000/words.parquet' (use_tmp_file false)) from x
-- refused: COPY in parts
with x as (copy words to '{folder}/parts' (format parquet, partition_by (upos))) from x
-- refused: INSERT in a CTE
with x as (insert into words select * from words returning *) from x
-- refused: INSERT into a table that statements share
with x as (insert into stored.words select * from stored.words) select 1
-- refused: UPDATE in a CTE
with x as (update words set form = 'forged' returning form) from x
-- refused: DELETE in a CTE
with x as (delete from words returning *) from x
-- refused: MERGE in a CTE
with x as (merge into heads using heads h on heads.head = h.head when matched then delete returning *) from x
-- refused: TRUNCATE in a CTE
with x as (truncate words) from x
-- refused: CREATE in a CTE
with x as (create table t as select 1) from x
-- refused: INSERT
insert into words values (1)
-- refused: INSERT with a CTE before it
with x as (select 1) insert into words from x
-- refused: UPDATE
update heads set layer = 0
-- refused: DELETE
delete from examples
-- refused: TRUNCATE
truncate examples
-- refused: MERGE
merge into heads using heads h on heads.head = h.head when matched then delete
-- refused: CREATE TABLE
create table stolen as from words
-- refused: CREATE TEMP TABLE over a published one
create temp table words as select 'forged' form
-- refused: CREATE VIEW over a published one
create or replace view words as select 'forged' form
-- refused: CREATE TEMP VIEW
create temp view v as select 1
-- refused: CREATE SCHEMA
create schema s
-- refused: CREATE SEQUENCE
create sequence s
-- refused: CREATE TYPE
create type mood as enum ('a')
-- refused: CREATE INDEX
create index i on heads (layer)
-- refused: CREATE MACRO
create macro lower(x) as 'forged'
-- refused: CREATE TEMP MACRO that makes a table
create temp macro t() as table from read_text('/etc/passwd')
-- refused: CREATE FUNCTION
create function f(x) as x
-- refused: CREATE SECRET
create secret (type s3, key_id 'a', secret 'b')
-- refused: DROP
drop view words
-- refused: DROP SCHEMA
drop schema stored cascade
-- refused: ALTER
alter view words rename to others
-- refused: COMMENT
comment on table words is 'forged'
-- refused: BEGIN
begin transaction
-- refused: COMMIT
commit
-- refused: ROLLBACK
rollback
-- refused: CHECKPOINT
checkpoint
-- refused: FORCE CHECKPOINT
force checkpoint
-- refused: VACUUM
vacuum
-- refused: ANALYZE
analyze
-- refused: a checkpoint as a function
from checkpoint()
-- refused: the same by force
from force_checkpoint()
-- refused: two statements
select 1; select 2
-- refused: a statement that writes after one that reads
select 1; drop view words
-- refused: a statement that writes before one that reads
drop view words; select 1
-- refused: a statement that writes behind a comment
select 1 /* ; */ ; create table t (a int)
-- refused: a log entry
select write_log('forged')
-- refused: logs
from truncate_duckdb_logs()
-- refused: logging into a file
from enable_logging('QueryLog', storage = 'file', storage_config = {'path': '{folder}/log'})
-- refused: CALL of the same
call enable_logging(storage = 'file')
-- refused: logging off
call disable_logging()
-- refused: profiling into a file
from enable_profiling()
