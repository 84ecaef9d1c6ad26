-- One row for each arc between words: a dependent that has tokens, its relation, its governor (null for a root).
--
-- `derived` arcs are those that Universal Dependencies draws another way and other schemes annotate: where an
-- adposition marks a noun (`case`; the clitic 's is no adposition), `pobj` is the noun below the adposition, and
-- `prep` is the adposition below the noun's governor. A noun that is a root gives no `prep`. A store whose words have
-- `pobj` or `prep` of their own gets none. `clitic` is the possessive clitic that follows a possessor.
with parsed as materialized (  -- read once: a large store is many files
    select example, side, part, sentence, word, governor, deprel, derived, upos, xpos, form, aligned
    from words
),
annotated as (
    select example, side, part, sentence, word, governor, deprel, derived
    from parsed
    where deprel is not null and aligned <> 'none'
),
marked as (
    select
        noun.example, noun.side, noun.part, noun.sentence, noun.word as noun, noun.governor, noun.aligned,
        mark.word as adposition, mark.aligned as adposition_aligned
    from parsed as mark
    join parsed as noun
        on noun.example = mark.example and noun.side = mark.side and noun.word = mark.governor
    where
        (mark.deprel = 'case' or starts_with(mark.deprel, 'case:'))
        and mark.upos = 'ADP'
        and not exists (from parsed where deprel in ('pobj', 'prep'))
),
arcs as (
    from annotated
    union all
    select example, side, part, sentence, noun, adposition, 'pobj', true
    from marked
    where aligned <> 'none'
    union all
    select example, side, part, sentence, adposition, governor, 'prep', true
    from marked
    where adposition_aligned <> 'none' and governor is not null
),
clitics as (
    select example, side, part, sentence, word
    from parsed
    where
        xpos = 'POS' or lower(form) in ('''s', '’s')
        or (form in ('''', '’') and upos is distinct from 'PUNCT')
)
select
    a.example, a.side, a.part, a.sentence, a.word, a.governor, a.deprel, a.derived, c.word as clitic
from arcs as a
left join clitics as c
    on c.example = a.example and c.side = a.side and c.part = a.part and c.sentence = a.sentence
    and c.word = a.word + 1 and a.deprel in ('poss', 'nmod:poss')
