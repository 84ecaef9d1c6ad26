-- What [CLS] looks at: the largest weight that it gives to a token of each linguistic feature, in the last layer.
--
-- Only examples that have the feature count; for the features, see the view `word_features`. `row = sep` asks the same
-- of [SEP] (the mean of its rows). `layer` chooses another layer; null is the last.
-- reads:   received_facts, tokens, words
-- needs:   tags
-- params:  kind text = null, row text in (cls, sep) = cls, layer integer = null
-- returns: layer, head, feature [NOUN; VERB; PRON; SUBJ; OBJ; NEG; CLS; SEP], value [weight, 0-1],
--          n [examples that have the feature]
-- source:  Kovaleva et al. 2019, section 4.5 and figure 7
-- paint:   value, bars(value, by=feature)
with featured as materialized (
    select distinct example, token, feature
    from token_features
    where side = (select any_value(keys) from heads where kind = $kind)
),
lists as materialized (
    select f.example, f.feature, if($row = 'cls', r.from_cls, r.from_sep) as given
    from featured as f
    join stored.received_facts as r on r.example = f.example and r.token = f.token
    where r.kind = $kind
),
largest as (
    select l.example, l.feature, h.layer, h.head, max(l.given[h.position]) as value
    from lists as l
    cross join stored.heads as h
    where h.kind = $kind and h.layer = coalesce($layer, (select max(layer) from heads where kind = $kind))
    group by l.example, l.feature, h.layer, h.head
)
select layer, head, feature, avg(value) as value, count(value) as n
from largest
group by layer, head, feature
order by layer, head, list_position(['NOUN', 'VERB', 'PRON', 'SUBJ', 'OBJ', 'NEG', 'CLS', 'SEP'], feature)
