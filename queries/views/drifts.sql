-- One row for each head and pair of a clean text and one with a trigger: what the head focuses on in the clean one, and
-- whether the focus of the other is the trigger.
--
-- A pair are examples with one pair_id whose conditions are clean and `condition`, trigger or random_trigger. One whose
-- trigger was cut off with its text is none. The focus of a head is the token that most queries weigh most, which are
-- `focus_share` of all; it is a `separator`, or a word with this lower-cased `form` (the token where it has no word).
-- `trigger_weight` is the mean weight on the trigger of a query of the other text.
with members as (
    select example, pair_id, condition, count(*) over (partition by pair_id, condition) as n
    from examples
    where pair_id is not null
)
select
    c.kind, c.layer, c.head, clean.pair_id, other.condition, c.example as clean, o.example as triggered,
    c.focusing / c.n_queries as focus_share,
    coalesce(t.special in ('cls', 'sep', 'bos', 'eos'), t.punct) as separator,
    lower(coalesce(w.form, t.text)) as form,
    u.trigger as on_trigger,
    o.trigger_sum / o.n_queries as trigger_weight
from members as clean
join members as other
    on other.pair_id = clean.pair_id and clean.condition = 'clean' and other.condition in ('trigger', 'random_trigger')
join focus_facts as c on c.example = clean.example
join focus_facts as o on o.example = other.example and o.kind = c.kind and o.layer = c.layer and o.head = c.head
join tokens as t on t.example = c.example and t.side = c.side and t.token = c.focus
left join words as w on w.example = t.example and w.side = t.side and w.word = t.word
join tokens as u on u.example = o.example and u.side = o.side and u.token = o.focus
where
    o.trigger_sum is not null
    and if(clean.n = 1 and other.n = 1, true, error('pair_id ' || clean.pair_id || ': one example of each condition'))
