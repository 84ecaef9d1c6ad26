-- One row for each input of the corpus that could not be used, and why.
select name, reason, origin
from stored.skipped
