-- Which head finds antecedents best for each type of mention, beside what the text alone and chance reach.
--
-- Definitions are those of coref/accuracy and coref/baselines, and all numbers of a row are of the same mentions.
-- `directions` are the paper's, mention_to_antecedent, or both. Ties go to the lowest layer and head, then to
-- mention_to_antecedent.
--
-- By default the head is chosen on the mentions that it is scored on, which flatters it. `held_out = odd` chooses on
-- the even half of the documents and scores on the odd one, `even` the other way round (see the view `halves`): ask
-- both, since each leaves half of the mentions out. A type without mentions in one of the halves is not listed then.
--
-- With `weights = norm` a weight counts times |f(x)|, the length of what the head moves from the key at weight 1.
-- reads:   antecedents, halves, heads, mention_facts(candidates=$candidates, pieces=$pieces, weights=$weights)
-- needs:   mentions, value_norms if weights=norm
-- params:  kind text = null, type text in (all, pronoun, proper, nominal) = null,
--          candidates text in (preceding_mention_heads, earlier_mention_heads, mention_heads, all_words)
--            = preceding_mention_heads,
--          directions text in (published, all) = published, determiners text in (pronoun, nominal) = pronoun,
--          pieces text in (mean, first, max) = mean, held_out text in (no, odd, even) = no,
--          weights text in (attention, norm) = attention
-- returns: type [all; pronoun; proper; nominal], n [mentions scored], layer, head,
--          direction [mention_to_antecedent; antecedent_to_mention], accuracy [0-1],
--          nearest [accuracy of the closest candidate], head_match, rule_based, chance,
--          head_label [layer-head, from 1 as papers print]
-- source:  Clark et al. 2019, Table 2
-- paint:   bars(accuracy, rule_based, by=type, label=head_label)
with folds as (  -- chosen in fold 0 and scored in fold 1, or both in fold 0
    select example, case $held_out when 'no' then 0 when 'odd' then half else 1 - half end as fold
    from halves
),
typed as (
    select
        f.fold, a.* exclude (type),
        unnest(if(a.type is null, ['all'], ['all', if(a.determiner, $determiners, a.type)])) as type
    from antecedents as a
    join folds as f using (example)
    where a.candidates = $candidates and (select any_value(queries) from heads where kind = $kind) = 'source'
),
scored as materialized (
    from typed
    where $type is null or type = $type
),
totals as (
    select
        type, fold, count(*) as n,
        avg(list_contains(antecedents, nearest)::integer) as nearest,
        avg(coalesce(list_contains(antecedents, head_match), false)::integer) as head_match,
        avg(list_contains(antecedents, rule_based)::integer) as rule_based,
        avg(len(antecedents) / n_candidates) as chance
    from scored
    group by type, fold
),
predictions as (
    select 'mention_to_antecedent' as direction, s.type, s.fold, s.antecedents, f.attends_to as predicted
    from scored as s
    join stored.mention_facts as f on f.example = s.example and f.mention = s.mention and f.kind = $kind
    union all
    select 'antecedent_to_mention', s.type, s.fold, s.antecedents, f.attended_by
    from scored as s
    join stored.mention_facts as f on f.example = s.example and f.mention = s.mention and f.kind = $kind
    where $directions = 'all'
),
hits as (
    select p.direction, p.type, p.fold, h.position, count(*) as correct
    from predictions as p
    join stored.heads as h on h.kind = $kind and list_contains(p.antecedents, p.predicted[h.position])
    group by p.direction, p.type, p.fold, h.position
),
scores as (
    select t.*, d.direction, h.layer, h.head, h.position, coalesce(e.correct, 0) as correct
    from totals as t
    cross join stored.heads as h
    cross join (select distinct direction from predictions) as d
    left join hits as e using (type, fold, direction, position)
    where h.kind = $kind
),
chosen as (
    select type, direction, position
    from scores
    where fold = 0
    qualify row_number() over (partition by type order by correct desc, position, direction desc) = 1
)
select
    type, s.n, s.layer, s.head, direction, s.correct / s.n as accuracy,
    s.nearest, s.head_match, s.rule_based, s.chance,
    (s.layer + 1) || '-' || (s.head + 1) as head_label
from scores as s
join chosen as c using (type, direction, position)
where s.fold = if($held_out = 'no', 0, 1)
order by type <> 'all', s.n desc, type
