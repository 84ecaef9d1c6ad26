-- How much of the parse the maximum spanning tree of each head's word map finds.
--
-- Directed trees (Chu-Liu-Edmonds) hang on the gold root; undirected ones take the larger of the two weights of a pair.
-- Sentences with one root count, without the root itself. `branching` hangs every word on the word before it, or all on
-- the word after, whichever is right more often; `adjacent` joins neighbours. Trees are costly: they are made of `sample`
-- examples, evenly spread, 0 for all; null takes what `attnstore refresh` stored, else 20. Cross maps have no trees and
-- no rows here.
-- reads:   tree_facts(pieces=$pieces, sample=$sample), words, heads
-- needs:   relations
-- params:  kind text = null, pieces text in (mean, first, max) = mean, sample integer from 0 = null
-- returns: layer, head, uas [0-1], branching [UAS of a branch to one side, 0-1], uuas [0-1],
--          adjacent [UUAS of joining neighbours, 0-1], n [words with a governor]
-- source:  Raganato and Tiedemann 2018; Htut et al. 2019
-- paint:   uuas, layers(uuas, line=adjacent)
with sums as (
    select layer, head, sum(correct) as correct, sum(undirected_correct) as undirected, sum(n) as n
    from tree_facts
    where kind = $kind
    group by layer, head
),
placed as (
    select
        example, sentence, word, governor,
        row_number() over (partition by example, sentence order by word) as place,
        count(*) filter (governor is null) over (partition by example, sentence) as roots
    from words
    where
        deprel is not null and n_tokens > 0
        and side = (select any_value(queries) from heads where kind = $kind)
        and example in (select example from tree_facts where kind = $kind)
),
offsets as (
    select g.place - d.place as away
    from placed as d
    join placed as g on g.example = d.example and g.sentence = d.sentence and g.word = d.governor
    where d.roots = 1
),
baseline as (
    select
        greatest(avg((away = 1)::integer), avg((away = -1)::integer)) as branching,
        avg((abs(away) = 1)::integer) as adjacent
    from offsets
)
select
    layer, head, correct / nullif(n, 0) as uas, branching, undirected / nullif(n, 0) as uuas, adjacent,
    n::bigint as n
from sums, baseline
order by layer, head
