-- One row for each segment, a unit of work on disk.
select try_cast(name as integer) as segment, n_examples, n_files, n_bytes, tables
from stored.segments
