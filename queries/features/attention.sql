-- How much attention the tokens of each linguistic feature receive: the largest of their mean weights from all queries.
--
-- `strict`: tokens of words that have the feature (see the view `word_features`); examples without it do not count.
-- `kovaleva` repeats the released code: every token spelt like a piece of such a word counts, and an example without
-- the feature counts as 0. Its negations are looked for anywhere in the text (`nor` in `north`), then cut at the
-- apostrophe and looked for among the tokens; only examples where a text holds one count.
-- reads:   received_facts, tokens, words, examples
-- needs:   tags
-- params:  kind text = null, compat text in (strict, kovaleva) = strict
-- returns: layer, head, feature [NOUN; VERB; PRON; SUBJ; OBJ; NEG; CLS; SEP], value [weight, 0-1],
--          base [mean weight of all tokens, 0-1], n [examples]
-- source:  Kovaleva et al. 2019, section 4.4 and figure 6
-- paint:   value, layers(value, by=feature)
with own_tokens as (
    select t.example, t.token, t.text, t.special
    from tokens as t
    where t.side = (select any_value(keys) from heads where kind = $kind)
),
own_features as (
    select f.example, f.token, f.feature
    from token_features as f
    where f.side = (select any_value(keys) from heads where kind = $kind)
),
negations as (
    select
        unnest([
            'neither', 'nor', 'not', 'never', 'none', 'don''t', 'won''t', 'didn''t', 'hadn''t', 'haven''t', 'can''t',
            'isn''t', 'wasn''t', 'shouldn''t', 'couldn''t', 'nothing', 'nowhere'
        ]) as negation
),
negated as (
    select e.example, n.negation
    from examples as e
    join negations as n on contains(e.text, n.negation) or contains(coalesce(e.second, ''), n.negation)
    where $compat = 'kovaleva'
),
pieces as (
    select f.example, f.feature, t.text
    from own_features as f
    join own_tokens as t using (example, token)
    where $compat = 'kovaleva' and f.feature not in ('NEG', 'CLS', 'SEP')
    union
    select example, 'NEG', unnest(if(contains(negation, ''''), [split_part(negation, '''', 1), '''', 't'], [negation]))
    from negated
),
featured as materialized (
    select distinct example, token, feature
    from own_features
    where $compat = 'strict' or feature in ('CLS', 'SEP')
    union all
    select t.example, t.token, p.feature
    from own_tokens as t
    join pieces as p using (example, text)
    where t.special is null
),
-- Every example that a feature's mean is taken over.
counted as (
    select distinct example, feature from featured where $compat = 'strict' or feature in ('CLS', 'SEP')
    union
    select e.example, f.feature
    from (select distinct example from own_tokens) as e
    cross join (select distinct feature from featured) as f
    where $compat = 'kovaleva' and f.feature not in ('NEG', 'CLS', 'SEP')
    union
    select example, 'NEG' from negated
),
lengths as (select example, count(*) as n_tokens from own_tokens group by example),
totals as (
    select c.feature, count(*) as n, avg(1 / l.n_tokens) as base
    from counted as c
    join lengths as l using (example)
    group by c.feature
),
-- A token's list over heads is taken before it meets the heads: afterwards it would be taken once a head.
lists as materialized (
    select f.example, f.feature, r.received
    from featured as f
    join stored.received_facts as r on r.example = f.example and r.token = f.token
    where r.kind = $kind
),
largest as (
    select l.example, l.feature, h.position, max(l.received[h.position]) as value
    from lists as l
    cross join stored.heads as h
    where h.kind = $kind
    group by l.example, l.feature, h.position
),
sums as (select feature, position, sum(value) as total from largest group by feature, position)
select h.layer, h.head, t.feature, coalesce(s.total, 0) / t.n as value, t.base, t.n
from totals as t
cross join stored.heads as h
left join sums as s on s.feature = t.feature and s.position = h.position
where h.kind = $kind
order by h.layer, h.head, list_position(['NOUN', 'VERB', 'PRON', 'SUBJ', 'OBJ', 'NEG', 'CLS', 'SEP'], t.feature)
