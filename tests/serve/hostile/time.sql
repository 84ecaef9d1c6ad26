-- Statements that take time. Each must end within the limits.

-- limited: a cross join
select count(*) from range(1000000) a, range(1000000) b
-- limited: a cross join with arithmetic
select sum(a.range * b.range % 7) from range(1000000) a, range(1000000) b
-- limited: a cross join of published tables
select count(*) from words a, words b, words c, words d, words e, words f, words g, words h
-- limited: a cross join of all weights
select sum(a.weight * b.weight * c.weight) from attention a, attention b, attention c
-- limited: a recursion without an end
with recursive t(n) as (select 1 union all select n + 1 from t) select max(n) from t
-- limited: a recursion without an end that stays where it is
with recursive t(n) as (select 1 union all select n from t) select count(*) from t
-- limited: a recursion with a key
with recursive t(n, m) using key (n) as (select 1, 1 union select n, m + 1 from recurring.t) from t
-- limited: a join by inequality
select count(*) from range(300000) a join range(300000) b on a.range < b.range and hash(a.range) > hash(b.range)
-- limited: a join by a pattern
select count(*) from range(100000) a join range(100000) b on a.range::varchar similar to b.range::varchar || '.*'
-- limited: a distance of long strings
select levenshtein(repeat('a', 100000), repeat('b', 100000))
-- limited: another
select damerau_levenshtein(repeat('ab', 50000), repeat('ba', 50000))
-- limited: a likeness of long strings
select jaro_winkler_similarity(repeat('ab', 200000), repeat('ba', 200000))
-- limited: sets of letters of long strings
select sum(jaccard(repeat('ab', 200000), repeat('ba', 200000) || range)) from range(100000)
-- limited: a regular expression with counts
select regexp_matches(repeat('a', 1000000), '(((a{1,30}){1,30}){1,30}){1,30}b')
-- limited: a regular expression over long strings
select count(*) from range(1000) where regexp_matches(repeat('a', 1000000) || range, '(a|aa)+$')
-- limited: a replacement everywhere
select length(regexp_replace(repeat('a', 10000000), 'a', 'bbbbbbbbbb', 'g'))
-- limited: all parts
select len(regexp_extract_all(repeat('ab', 10000000), 'a'))
-- limited: splits
select len(string_split(repeat('a,', 20000000), ','))
-- limited: LIKE with many stars
select repeat('a', 100000) like repeat('%a', 10000) || 'b'
-- limited: GLOB with many stars
select repeat('a', 100000) glob repeat('*a', 30) || 'b'
-- limited: a sort of many numbers
select max(x) from (select hash(range) x from range(1000000000) order by x limit 1000000)
-- limited: a lambda over many numbers
select list_sum(list_transform(range(100000000), lambda x: x * x % 7))
-- limited: lambdas inside lambdas
select list_transform(range(3000), lambda a: list_transform(range(3000), lambda b: list_transform(range(3000), lambda c: a * b * c)))
-- limited: a reduction
select list_reduce(range(50000000), lambda x, y: (x * 31 + y) % 1000003)
-- limited: a window over a window
select sum(x) from (select sum(range) over (order by hash(range) rows between 1000000 preceding and 1000000 following) x from range(3000000))
-- limited: a median in a frame
select max(m) from (select median(range) over (order by hash(range) rows between 100000 preceding and current row) m from range(1000000))
-- limited: a window of distinct values
select max(m) from (select count(distinct range % 1000) over (order by range rows 100000 preceding) m from range(1000000))
-- limited: a subquery for each row
select count(*) from range(1000000) a where (select count(*) from range(1000000) b where b.range % (a.range + 1) = 0) > 5
-- limited: quantiles of everything
select quantile_cont(range, list_transform(range(1000), lambda x: x / 1000.0)) from range(100000000)
-- limited: hashes of long strings
select max(sha256(repeat('a', 1000000) || range)) from range(100000)
-- limited: a chain of hashes
select list_reduce(list_transform(range(3000000), lambda x: x::varchar), lambda x, y: sha256(x || y))
-- limited: random numbers
select avg(random()) from range(100000000000)
-- limited: large factors
select sum(gcd(range, 1000000007)) from range(100000000000)
-- limited: texts of dates
select count(strptime(strftime(now()::timestamp, '%Y-%m-%d'), '%Y-%m-%d')) from range(10000000000)
-- limited: JSON taken apart
select sum(json_extract('[' || repeat('1,', 100000) || '1]', '$[99999]')::int) from range(100000)
-- limited: accents
select length(strip_accents(repeat('é', 100000000)))
-- limited: letters as they are seen
select length_grapheme(repeat('é', 100000000))
-- limited: a text from the right
select length(reverse(repeat('é', 200000000)))
-- limited: an ASOF join without an order
select count(*) from range(5000000) a asof join range(5000000) b on hash(a.range) >= hash(b.range)
-- limited: a constant that is folded while planning
select 1 where levenshtein(repeat('a', 100000), repeat('b', 100000)) > 3
-- limited: the same in LIMIT
select form from words limit levenshtein(repeat('a', 100000), repeat('b', 100000))
-- limited: a constant list that is folded while planning
select list_sum(list_transform(range(200000000), lambda x: x + 1)) from words
-- limited: a constant pattern that is folded while planning
select form from words where repeat('a', 3000000) ~ '(a|aa)+b'
-- limited: DESCRIBE, which plans
describe select levenshtein(repeat('a', 100000), repeat('b', 100000))
-- limited: SUMMARIZE of many rows
summarize select hash(range) x, range::varchar y from range(1000000000)
-- limited: bins
select equi_width_bins(0, 1000000000, 1000000000, true)
-- limited: factorials
select sum(factorial((range % 33)::int)) from range(100000000000)
