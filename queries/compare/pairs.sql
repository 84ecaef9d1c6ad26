-- Which examples of two stores are the same, and which have no partner.
--
-- Examples with equal tokens (text, ids, types) are pairs; of the others, those of equal name whose texts or words are
-- equal. `tokens`: pairs with equal tokens; `words`: of the others, those with equal words; `text`: the rest of the
-- pairs. Without a partner are examples whose `name` the other store has not, or has for another `text`.
-- reads:   pairs, unpaired, a.examples
-- returns: item [paired; only_a; only_b], state [tokens; words; text; name], n [examples], first [name of one]
-- source:  the stores' own tables
with found as (
    select
        'paired' as item,
        if(equal_tokens, 'tokens', if(equal_words, 'words', 'text')) as state,
        example_a as example, name
    from pairs
    join a.examples on example = example_a
    union all
    select 'only_' || store, reason, example, name
    from unpaired
)
select item, state, count(*) as n, arg_min(name, example) as first
from found
group by item, state
order by item <> 'paired', item, list_position(['tokens', 'words', 'text', 'name'], state)
