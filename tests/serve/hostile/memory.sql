-- Statements that take memory, also outside of what DuckDB counts. Each must end within the limits.

-- limited: one long string
select repeat('x', 2000000000)
-- limited: its length
select length(repeat('x', 4000000000))
-- limited: filled from the left
select lpad('x', 2000000000, 'y')
-- limited: filled from the right
select rpad('x', 2000000000, 'y')
-- limited: a bar
select bar(1, 0, 1, 2000000000)
-- limited: many long strings
select repeat('x', 1000000) || range from range(1000000)
-- limited: many long strings that are sorted
select s from (select repeat('x', 100000) || range s from range(100000)) order by s
-- limited: a string that doubles
with recursive t(s) as (select 'xxxxxxxx' union all select s || s from t) select max(length(s)) from t
-- limited: a list that doubles
with recursive t(l) as (select [1, 2, 3, 4] union all select l || l from t) select max(len(l)) from t
-- limited: a large list
select range(1000000000)
-- limited: a large list that is sorted
select list_sort(range(200000000))
-- limited: a large list backwards
select list_reverse(range(300000000))
-- limited: the places of a large list in order
select list_grade_up(range(200000000))
-- limited: distinct values of a large list
select len(list_distinct(range(200000000)))
-- limited: a list with places for more
select list_resize([1], 2000000000, 7)
-- limited: a list of lists
select list_transform(range(100000), lambda x: range(100000))
-- limited: a list in an aggregate
select list(range) from range(1000000000)
-- limited: strings in an aggregate
select string_agg(range::varchar, ',') from range(1000000000)
-- limited: long strings in an aggregate
select string_agg(repeat('x', 100000), ',') from range(100000)
-- limited: JSON in an aggregate
select json_group_array(range) from range(500000000)
-- limited: an object of JSON in an aggregate
select json_group_object(range, repeat('x', 1000)) from range(10000000)
-- limited: a histogram of everything
select histogram(range) from range(1000000000)
-- limited: a map of everything
select map(range(100000000), range(100000000))
-- limited: groups
select count(*) from (select hash(range), count(*) from range(1000000000) group by all)
-- limited: groups with lists
select count(l) from (select range % 1000000 g, list(range) l from range(1000000000) group by g)
-- limited: distinct values
select count(distinct hash(range)) from range(1000000000)
-- limited: a join by equality
select count(*) from range(1000000000) a join range(1000000000) b using (range)
-- limited: a sort of everything
select * from range(1000000000) order by hash(range) offset 999999999
-- limited: a window over everything
select lag(range, 100000000) over (order by hash(range)) from range(1000000000) offset 999999999
-- limited: the product of lists
select len(list_transform(range(100000), lambda x: [[x, y] for y in range(100000)]))
-- limited: rows of a list
select unnest(range(1000000000))
-- limited: rows of a list in FROM
select count(*) from unnest(range(2000000000))
-- limited: rows of lists of lists
select unnest([range(100000000), range(100000000)], recursive := true)
-- limited: a median
select median(hash(range)) from range(1000000000)
-- limited: the most frequent
select mode(hash(range)) from range(1000000000)
-- limited: many best
select max(range, 1000000) from range(1000000000)
-- limited: too many best
select arg_max(repeat('x', 10000) || range, range, 999999) from range(100000000)
-- limited: the most frequent, about
select approx_top_k(range, 100000000) from range(100000000)
-- limited: points left of a curve
select lttb(range::double, range::double, 100000000) from range(100000000)
-- limited: bits
select bitstring('1', 2000000000)
-- limited: bits in an aggregate
select bitstring_agg(range, 0, 99999999) from range(1000000000)
-- limited: hexadecimal
select hex(repeat('x', 1000000000))
-- limited: base 64
select base64(repeat('x', 1000000000)::blob)
-- limited: a replacement that grows
select replace(repeat('x', 100000000), 'x', 'yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy')
-- limited: a translation
select translate(repeat('x', 1000000000), 'x', 'y')
-- limited: a format that is wide
select format('{:1000000000}', 1)
-- limited: printf that is wide
select printf('%1000000000d', 1)
-- limited: a format that takes an argument often
select format(repeat('{0}', 100000), repeat('x', 1000000))
-- limited: strings joined
select concat_ws(repeat('x', 10000000), '1', '2', '3', '4', '5', '6', '7', '8', '9', '10', '11', '12', '13')
-- limited: a list joined
select array_to_string(range(100000), repeat('x', 100000))
-- limited: a list in large letters
select upper(range(200000000)::varchar)
-- limited: a list as JSON
select to_json(range(200000000))
-- limited: nested JSON
select json(repeat('[', 10000000) || repeat(']', 10000000))
-- limited: a type that JSON names
select from_json(repeat('[', 1000000) || repeat(']', 1000000), repeat('[', 1000000) || '"INT"' || repeat(']', 1000000))
-- limited: the shape of nested JSON
select json_structure(repeat('{"a":', 1000000) || '1' || repeat('}', 1000000))
-- limited: nested JSON walked through
select count(*) from json_tree(repeat('[', 100000) || repeat(']', 100000))
-- limited: wide JSON walked through
select count(*) from json_each('[' || repeat('1,', 100000000) || '1]')
-- limited: a path of JSON that is long
select json_extract('{}', '$' || repeat('.a', 10000000))
-- limited: variants, nested
select (repeat('[', 100000) || repeat(']', 100000))::json::variant
-- limited: a cast of a nested list
select (repeat('[', 100000) || repeat(']', 100000))::int[][]
-- limited: a large enum
select enum_range(null::enum('a')) || range(1000000000)::varchar[]
-- limited: a vector of fixed length
select array_value(1)::int[100000]
-- limited: the pivot of many values
from (select range % 1000 a, range b from range(100000000)) pivot (list(b) for a in (1, 2, 3, 4, 5, 6, 7, 8))
-- limited: a recursion that keeps everything
with recursive t(n, s) as (select 1, repeat('x', 100000) union all select n + 1, s from t) select count(s) from t
-- limited: a union that keeps what is distinct
with recursive t(n) as (select range from range(1000000) union select n + 1000000 from t) select count(*) from t
-- limited: CTEs that are held
with a as materialized (select range x, repeat('x', 100) s from range(100000000)), b as materialized (from a) select count(*) from a, b
-- limited: a union of values
select union_value(a := repeat('x', 1500000000))
-- limited: an interval of times
select generate_series(timestamp '0001-01-01', timestamp '9999-01-01', interval 1 millisecond)
-- limited: rows of times
from generate_series(timestamp '0001-01-01', timestamp '9999-01-01', interval 1 microsecond)
-- limited: words by letters
select string_split(repeat('x', 100000000), '')
-- limited: quoted forms of addresses
select url_encode(repeat('é', 500000000))
-- limited: sampling everything
select list(r) from (select range r from range(10000000000) using sample 90%)
-- limited: a reservoir that is large
select r from range(10000000000) t(r) using sample reservoir(1000000000 rows)
