-- How often the head word of a mention attends most to the head word of one of its antecedents.
--
-- Scored are mentions that have an antecedent among the candidates: a mention of the same cluster in the same example.
-- `candidates` are the head words of mentions that end before this one starts (preceding_mention_heads); that start
-- before it, so that one may contain it (earlier_mention_heads); of all others (mention_heads), as for a pronoun
-- between two names; or all_words, where antecedents are those that precede. Two mentions with one head word are one
-- candidate, right if either is. Special tokens and the mention's own head word take no part.
--
-- `mention_to_antecedent`: of all candidates, the row of the mention's head word weighs this one most.
-- `antecedent_to_mention`: of all candidates, this one's row weighs the mention's head word most. The paper has the
-- first. Types go by the tags of the head word; `determiners` says what a mention is whose head word is one ("all",
-- "both"). A mention without tags counts in `all` alone. Mentions lie in the source: no other maps have rows.
--
-- With `weights = norm` a weight counts times |f(x)|, the length of what the head moves from the key at weight 1.
-- reads:   antecedents, heads, mention_facts(candidates=$candidates, pieces=$pieces, weights=$weights)
-- needs:   mentions, value_norms if weights=norm
-- params:  kind text = null, type text in (all, pronoun, proper, nominal) = null, layer integer = null,
--          head integer = null,
--          candidates text in (preceding_mention_heads, earlier_mention_heads, mention_heads, all_words)
--            = preceding_mention_heads,
--          determiners text in (pronoun, nominal) = pronoun, pieces text in (mean, first, max) = mean,
--          weights text in (attention, norm) = attention
-- returns: layer, head, direction [mention_to_antecedent; antecedent_to_mention],
--          type [all; pronoun; proper; nominal], n [mentions], correct, accuracy [0-1]
-- source:  Clark et al. 2019, section 4.3
-- paint:   accuracy
with typed as (
    select
        example, mention, antecedents,
        unnest(if(type is null, ['all'], ['all', if(determiner, $determiners, type)])) as type
    from antecedents
    where candidates = $candidates and (select any_value(queries) from heads where kind = $kind) = 'source'
),
scored as materialized (
    from typed
    where $type is null or type = $type
),
predictions as (
    select 'mention_to_antecedent' as direction, s.type, s.antecedents, f.attends_to as predicted
    from scored as s
    join stored.mention_facts as f on f.example = s.example and f.mention = s.mention and f.kind = $kind
    union all
    select 'antecedent_to_mention', s.type, s.antecedents, f.attended_by
    from scored as s
    join stored.mention_facts as f on f.example = s.example and f.mention = s.mention and f.kind = $kind
),
asked_heads as (
    select layer, head, position
    from stored.heads
    where kind = $kind and ($layer is null or layer = $layer) and ($head is null or head = $head)
),
hits as (
    select p.direction, p.type, h.position, count(*) as correct
    from predictions as p
    join asked_heads as h on list_contains(p.antecedents, p.predicted[h.position])
    group by p.direction, p.type, h.position
),
totals as (
    select type, count(*) as n
    from scored
    group by type
)
select
    h.layer, h.head, d.direction, t.type, t.n,
    coalesce(e.correct, 0) as correct, coalesce(e.correct, 0) / t.n as accuracy
from totals as t
cross join asked_heads as h
cross join (select unnest(['mention_to_antecedent', 'antecedent_to_mention']) as direction) as d
left join hits as e using (direction, type, position)
order by t.type <> 'all', t.n desc, t.type, d.direction desc, h.layer, h.head
