-- How often the text alone finds an antecedent: what a head has to beat.
--
-- `nearest` takes the closest candidate; `head_match` the closest with the same lower-cased head word, and is wrong
-- without one; `rule_based` the closest in the first sieve that has any: the same text, the same head word, agreement
-- in number, gender and person, any. The view `antecedents` says how words agree. With all_words these three choose
-- among the heads of preceding mentions. `chance` is the share of the candidates that are right, and so what drawing
-- one would reach. Mentions, candidates and types are those of coref/accuracy.
-- reads:   antecedents
-- needs:   mentions
-- params:  type text in (all, pronoun, proper, nominal) = null,
--          candidates text in (preceding_mention_heads, earlier_mention_heads, mention_heads, all_words)
--            = preceding_mention_heads,
--          determiners text in (pronoun, nominal) = pronoun
-- returns: baseline [nearest; head_match; rule_based; chance], type [all; pronoun; proper; nominal], n [mentions],
--          correct [expected for chance], accuracy [0-1], n_candidates [mean]
-- source:  Clark et al. 2019, Table 2
-- paint:   bars(accuracy, by=type, label=baseline)
with typed as (
    select
        * exclude (type),
        unnest(if(type is null, ['all'], ['all', if(determiner, $determiners, type)])) as type
    from antecedents
    where candidates = $candidates
),
found as (
    select
        b.baseline, t.type, t.n_candidates,
        case b.baseline
            when 'nearest' then list_contains(t.antecedents, t.nearest)::double
            when 'head_match' then coalesce(list_contains(t.antecedents, t.head_match), false)::double
            when 'rule_based' then list_contains(t.antecedents, t.rule_based)::double
            else len(t.antecedents) / t.n_candidates
        end as correct
    from typed as t
    cross join (select unnest(['nearest', 'head_match', 'rule_based', 'chance']) as baseline) as b
    where $type is null or t.type = $type
)
select
    baseline, type, count(*) as n, sum(correct) as correct, avg(correct) as accuracy, avg(n_candidates) as n_candidates
from found
group by baseline, type
order by type <> 'all', n desc, type, list_position(['nearest', 'head_match', 'rule_based', 'chance'], baseline)
