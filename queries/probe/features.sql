-- What a probe of attention alone is trained on: for each word and candidate for its governor, the weights both ways.
--
-- A score is a weighted sum over heads of forward (candidate to dependent) and backward (dependent to candidate). The
-- candidate -1 is the root, with the dependent's weights on [CLS] and [SEP], null without one. Words without tokens are
-- left out, so a word whose governor has none has no true label. `attnstore export` writes a large corpus in chunks;
-- docs/probe.py trains a probe on them. Cross maps have no rows here.
-- reads:   pair_rows(pieces=$pieces), words, heads, examples
-- needs:   relations
-- params:  kind text = null, pieces text in (mean, first, max) = mean
-- returns: example, document, sentence, dependent [word], candidate [word; -1 for the root], label, punct [not scored],
--          forward [weights over heads, layer-major], backward [weights over heads, layer-major]
-- source:  Clark et al. 2019, section 5
select
    p.example, e.document, p.sentence, p.dependent, p.candidate, p.label,
    split_part(w.deprel, ':', 1) = 'punct' as punct, p.forward, p.backward
from pair_rows as p
join words as w on w.example = p.example and w.word = p.dependent
join examples as e on e.example = p.example
join (select distinct kind, queries from heads) as h on h.kind = p.kind and h.queries = w.side
where p.kind = $kind
order by p.example, p.sentence, p.dependent, p.candidate
