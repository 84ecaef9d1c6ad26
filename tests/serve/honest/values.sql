-- Functions: lists, text, patterns, JSON, dates, statistics.

-- lists
select list_sort([3, 1, 2]), list_reverse([1, 2]), [1, 2] || [3], list_contains([1, 2], 2), len([1]), list_distinct([1, 1])[1]
-- slices
select [1, 2, 3, 4][2:3], [1, 2, 3][-1], 'abc'[1:2]
-- lambdas
select list_transform([1, 2, 3], lambda x: x * 2), list_filter([1, 2, 3], lambda x: x > 1), list_reduce([1, 2, 3], lambda x, y: x + y)
-- lambdas with places
select list_transform([4, 5, 6], lambda x, i: x * i)
-- comprehensions
select [x * 2 for x in range(5) if x % 2 = 0]
-- aggregates of lists by their names
select list_aggregate([1, 2, 3, 4], 'median'), list_aggregate(['a', 'b'], 'string_agg', '-'), list_sum([1, 2]), list_avg([1, 2])
-- methods
select form.lower().length() n, [3, 1].list_sort().list_first() from words order by all
-- products of vectors
select list_dot_product([1.0, 2.0], [3.0, 4.0]), list_cosine_similarity([1.0, 0.0], [1.0, 0.0]), list_distance([0.0, 3.0], [4.0, 0.0])
-- vectors of fixed length
select array_inner_product([1, 2]::float[2], [3, 4]::float[2]), [1, 2]::int[2]
-- structs
select {'a': 1, 'b': {'c': 2}}.b.c, struct_pack(x := 1, y := 2).y, row(1, 'a'), struct_extract({'k': 3}, 'k'), struct_insert({'a': 1}, b := 2)
-- maps
select map {'a': 1, 'b': 2}['b'], map_keys(map {'a': 1}), map_values(map(['x'], [7])), cardinality(map {'a': 1})
-- text
select lower(form), upper(form), reverse(form), length(form), substring(form, 1, 2), left(form, 1), right(form, 1), replace(form, 'a', 'b') from words order by all
-- more text
select trim('  a '), lpad('7', 3, '0'), repeat('ab', 3), concat('a', 'b'), concat_ws('-', 'a', 'b'), split_part('a-b', '-', 2), starts_with('abc', 'a'), contains('abc', 'b')
-- positions
select position('b' in 'abc'), strpos('abc', 'c'), instr('abc', 'a'), substring('abcdef' from 2 for 3), overlay('abcdef' placing 'x' from 2 for 3)
-- patterns
select form from words where form similar to '[a-m].*' and form like '%e%' or form ilike 'THE' or form ~ '^b' order by all
-- regular expressions
select regexp_extract('layer12', '([a-z]+)(\d+)', 2), regexp_replace('aab', 'a', 'x', 'g'), regexp_matches('abc', 'b'), regexp_extract_all('a1b2', '\d'), regexp_split_to_array('a,b', ',')
-- distances of words
select levenshtein('clock', 'block'), jaro_winkler_similarity('clock', 'block'), jaccard('abc', 'abd'), hamming('abc', 'abd'), damerau_levenshtein('ab', 'ba')
-- formats
select format('{} of {:.2f}', 'mean', 0.123), printf('%05.2f', 3.14159), format('{:>5}', 'a')
-- letters of Unicode
select strip_accents('é'), unicode('a'), chr(97), nfc_normalize('é'), length_grapheme('é'), bit_length('a')
-- hashes
select md5('a'), sha256('a'), hash(1) is not null, base64('a'::blob), hex('a'), from_hex('61')::varchar
-- JSON
select '{"a": [1, 2]}'::json -> 'a', '{"a": 1}' ->> '$.a', json_extract('{"a": {"b": 2}}', '$.a.b'), json_array_length('[1, 2]'), json_keys('{"a": 1}'), json_type('[1]')
-- JSON made
select to_json({'a': 1}), json_object('a', 1), json_array(1, 2), json_group_array(x) from (values (1), (1)) t(x)
-- JSON in rows
select key, value from json_each('{"a": 1, "b": 2}')
-- JSON as types
select from_json('{"a": 1}', '{"a": "INTEGER"}').a, json_structure('{"a": 1}'), json_valid('{')
-- dates
select date '2024-02-29' + interval 1 year, date_diff('day', date '2024-01-01', date '2024-02-01'), date_trunc('month', timestamp '2024-02-29 12:00:00'), extract(year from date '2024-01-01'), dayname(date '2024-01-01')
-- times as text
select strftime(timestamp '2024-01-02 03:04:05', '%Y/%m/%d %H:%M'), strptime('2024-01-02', '%Y-%m-%d'), try_strptime('x', '%Y'), epoch(timestamp '1970-01-01 00:00:10'), make_date(2024, 1, 2), age(date '2024-02-01', date '2024-01-01')
-- now
select current_date is not null, current_timestamp is not null, now() is not null, today() is not null, localtimestamp is not null
-- time zones
select (timestamptz '2024-01-01 00:00:00+00' at time zone 'UTC')::varchar, timezone('UTC', timestamp '2024-01-01')::varchar is not null
-- casts
select '1'::int, cast('1.5' as double), try_cast('x' as int), 1::varchar, true::int, [1]::varchar, '[1, 2]'::int[], 1.5::decimal(4, 2), 3::hugeint
-- conditions
select case when word = 0 then 'first' else 'later' end, if(word > 1, 1, 0), coalesce(lemma, form), nullif(word, 0), ifnull(governor, -1), greatest(word, 1), least(word, 1) from words order by all
-- comparisons with null
select null is null, 1 is distinct from null, null is not distinct from null, not true, 1 between 0 and 2, 2 not in (1, 3)
-- mathematics
select abs(-1), round(2.567, 2), floor(1.5), ceil(1.5), sqrt(4), ln(1), log2(8), exp(0), power(2, 3), 7 // 2, 7 % 2, 2 ** 3, pi() > 3, sign(-2), gcd(4, 6), factorial(5)
-- bits
select 5 & 3, 5 | 3, xor(5, 3), ~5, 1 << 3, bit_count(7), '101'::bit
-- statistics
select round(stddev(word), 3), round(var_pop(word), 3), round(skewness(word), 3), round(kurtosis(word), 3), round(entropy(word), 3), mode(word), mad(word) from words
-- quantiles
select median(word), quantile_cont(word, 0.9), quantile_disc(word, [0.25, 0.75]), approx_quantile(word, 0.5) is not null from words
-- correlations
select round(corr(a, b), 3), round(covar_pop(a, b), 3), round(regr_slope(b, a), 3), round(regr_r2(b, a), 3) from (values (1, 2), (2, 4), (3, 7)) t(a, b)
-- aggregates with an order
select string_agg(form, ' ' order by word), list(form order by word)[1:2], first(form order by word), arg_max(form, length(form)), max_by(word, word), min(form, 2) from words where example = 0
-- aggregates of truth
select bool_and(word >= 0), bool_or(word > 100), count_if(word = 0), count(distinct form), approx_count_distinct(form) > 0, any_value(1), product(2) from words where example = 3
-- histograms
select histogram(word % 3), map_entries(histogram(derived)) from words
-- ranks
select word, rank() over o, dense_rank() over o, percent_rank() over o, cume_dist() over o, ntile(2) over o, first_value(form) over o, last_value(form ignore nulls) over o, nth_value(form, 1) over o, lead(form, 1, 'none') over o from words where example = 0 window o as (order by word)
-- random, in ranges
select random() between 0 and 1, gen_random_uuid() is not null
-- enums, unions, variants
select 'a'::enum('a', 'b'), enum_range(null::enum('a', 'b')), union_value(n := 1).n, union_tag(union_value(n := 1)), variant_typeof(1::variant)
-- a type by its name
select typeof(form), typeof(1.5), typeof([1]), typeof({'a': 1}) from words limit 1
-- literals
select 0xff, 1_000, 1e3, e'a\tb', $$it's$$, x'61', interval 3 day, interval '2' hour, timestamp '2024-01-01'
-- collations
select form from words order by form collate nocase, form
-- parameters of several kinds
select $number + 1, $text || '!', $list[1], $nothing is null, $truth
-- bins
select time_bucket(interval 7 day, date '2024-01-10'), equi_width_bins(0, 10, 5, true), bar(5, 0, 10, 10)
