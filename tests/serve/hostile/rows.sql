-- Answers of too many rows or bytes. Each must be cut, and say so, or be refused for its size.

-- limited: a million million rows
from range(1000000000000)
-- limited: all of them twice
from range(1000000000000) union all from range(1000000000000)
-- limited: rows with text
select range, 'row ' || range from range(1000000000000)
-- limited: every row ten times
select unnest(range(10)) from range(1000000000)
-- limited: rows that are sorted
select range from range(50000000) order by range desc
-- limited: series
from generate_series(1, 1000000000000)
-- limited: series backwards
from generate_series(1000000000000, 1, -1)
-- limited: a limit that is large
from range(1000000000000) limit 999999999999
-- limited: a percentage
from range(10000000000) limit 99%
-- limited: one large value
select repeat('x', 3000000)
-- limited: many large values
select repeat('x', 30000) from range(10000)
-- limited: one large value behind many small ones
select if(range = 900, repeat('x', 3000000), 'x') from range(1000)
-- limited: a large list
select range(1000000)
-- limited: large lists
select range(10000) from range(1000)
-- limited: a value that grows in JSON
select repeat(chr(1), 500000)
-- limited: a value that grows in CSV
select repeat('"', 900000)
-- limited: bytes that grow in JSON
select repeat('x', 900000)::blob
-- limited: lists of nothing
select list_resize([]::int[], 1000000)
-- limited: structs
select list_transform(range(100000), lambda x: {'a long name of a field': x, 'another long name of a field': x})
-- limited: a map
select map(range(100000), range(100000))
-- limited: names of columns that are long
select 1 as "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
-- limited: every text of the store often
select string_agg(text, ' ') from examples, range(1000000)
-- limited: everything that is published
from attention a, tokens t
-- limited: infinite numbers
select 'inf'::double, 'nan'::double, '-inf'::float
-- limited: numbers that JSON does not know
select 170141183460469231731687303715884105727::hugeint, 99999999999999999999999999999999999999::decimal(38, 0)
-- limited: times that Python does not know
select 'infinity'::timestamp, '-infinity'::date, '290000-01-01'::date, '0044-03-15 (BC)'::date
-- limited: times with zones
select now(), current_time, '12:00:00+15:59:59'::timetz
-- limited: an interval that is long
select interval 1000000 years, interval 9223372036854775807 microseconds
-- limited: text that is not for a terminal
select chr(27) || '[2J', chr(0), chr(8238), chr(65534)
-- limited: columns of one name
select 1 as a, 2 as a, 3 as a
-- limited: a column without a name
select 1 as ""
-- limited: types that Arrow hardly knows
select uuid(), '101'::bit, 'a'::enum('a'), union_value(a := 1), {'a': [map {'b': 1}]}, null, [], 1::variant
-- limited: an empty struct as JSON
select '{}'::json, 'null'::json, '[1, {"a": null}]'::json
