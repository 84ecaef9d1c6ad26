-- Which heads leave what they focus on for a trigger that was planted in the text.
--
-- A head focuses on a token that more than `ratio` of the queries weigh most; the type is that of the token in the clean
-- text: a separator ([CLS], [SEP], full stop or comma), semantic (a word of `lexicon`, words with spaces between), or
-- other; overall is any. It drifts in a pair where the trigger is what most queries of the other text weigh most, with
-- a mean weight over `theta`. The drift ratio is null for a head that focuses in too small a share of pairs: less than
-- `often` for separator and overall, less than `seldom` for semantic and other (36 and 5 of 40 in the paper). Entropies
-- are means over the pairs in which it focuses. Choose the texts of one class with where: label = 'negative'.
-- reads:   focus_facts, head_facts(eps=$eps), examples, tokens, words
-- needs:   triggers
-- params:  kind text = null, condition text in (trigger, random_trigger) = trigger, ratio real = 0.6, theta real = 0.5,
--          often real = 0.9, seldom real = 0.125, lexicon text = '', eps real = 0.0001
-- returns: layer, head, type [separator; semantic; other; overall], n_focus [pairs], n_drift [pairs],
--          drift_ratio [0-1], entropy_clean_nats, entropy_triggered_nats, n [pairs]
-- source:  Lyu et al. 2022
-- paint:   drift_ratio
with pairs as (
    select
        d.*,
        e.entropy_sum / e.n_queries as entropy_clean,
        f.entropy_sum / f.n_queries as entropy_triggered,
        case
            when d.separator then 'separator'
            when list_contains(regexp_split_to_array(lower($lexicon), '\s+'), d.form) then 'semantic'
            else 'other'
        end as own_type
    from drifts as d
    join head_facts as e on e.example = d.clean and e.kind = d.kind and e.layer = d.layer and e.head = d.head
    join head_facts as f on f.example = d.triggered and f.kind = d.kind and f.layer = d.layer and f.head = d.head
    where d.kind = $kind and d.condition = $condition
),
placed as (
    select
        p.layer, p.head, t.type, t.least, p.entropy_clean, p.entropy_triggered,
        t.type in (p.own_type, 'overall') and p.focus_share > $ratio as focuses,
        p.on_trigger and p.trigger_weight > $theta as moves
    from pairs as p
    cross join (
        values (1, 'separator', $often), (2, 'semantic', $seldom), (3, 'other', $seldom), (4, 'overall', $often)
    ) as t (place, type, least)
)
select
    layer, head, type,
    count_if(focuses) as n_focus,
    count_if(focuses and moves) as n_drift,
    if(n_focus / count(*) >= any_value(least), n_drift / nullif(n_focus, 0), null) as drift_ratio,
    avg(entropy_clean) filter (focuses) as entropy_clean_nats,
    avg(entropy_triggered) filter (focuses) as entropy_triggered_nats,
    count(*) as n
from placed
group by layer, head, type
order by layer, head, list_position(['separator', 'semantic', 'other', 'overall'], type)
