-- How many rows each table of the store has.
-- reads:   examples, tokens, words, mentions, links, heads, segments, additions, skipped
-- returns: name, n
-- source:  the store's own tables
select 'examples' as name, count(*) as n from examples
union all select 'tokens', count(*) from tokens
union all select 'words', count(*) from words
union all select 'mentions', count(*) from mentions
union all select 'links', count(*) from links
union all select 'heads', count(*) from heads
union all select 'segments', count(*) from segments
union all select 'additions', count(*) from additions
union all select 'skipped', count(*) from skipped
