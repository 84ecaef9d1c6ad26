-- One row for each addition: tables that came later and replace those of the same name.
select name as addition, n_files, n_bytes, tables, facts
from stored.additions
