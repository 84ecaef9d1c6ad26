-- What was cut, skipped or could not be aligned.
-- reads:   examples, words, skipped
-- returns: item [example; word; skipped], state, n, share [0-1 of the item; of the whole corpus where skipped]
-- source:  the store's own tables
with counted as (
    select 1 as place, 'example' as item, cut as state, count(*) as n from examples group by cut
    union all
    select 2, 'word', aligned, count(*) from words group by aligned
    union all
    select 3, 'skipped', reason, count(*) from skipped group by reason
),
totals as (
    select
        (select count(*) from examples) as examples,
        (select count(*) from words) as words,
        (select count(*) from skipped) as skipped
)
select
    item, state, n,
    n / case item when 'example' then examples when 'word' then words else examples + skipped end as share
from counted, totals
order by place, n desc, state
