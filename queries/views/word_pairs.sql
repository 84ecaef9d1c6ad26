-- One row for each pair of words of one example that has a property, query first; a property may hold both ways.
--
-- governor: dependent and its governor; subject_verb: subject (nsubj) and its governor where that is a verb;
-- noun_pronoun: noun and pronoun of one sentence; same_tag: words of one part of speech; same_entity: head words of
-- mentions of one cluster; same_form: words of letters or digits that are alike but for case; links: words of a
-- link's source and target. Nouns, pronouns and verbs are those of `word_features`.
select example, side, 'governor' as property, word as source_word, governor as target_word
from words
where governor is not null
union all
select s.example, s.side, 'subject_verb', s.word, s.governor
from words as s
join word_features as v on v.example = s.example and v.side = s.side and v.word = s.governor
where s.deprel in ('nsubj', 'nsubj:outer') and v.feature = 'VERB'
union all
select n.example, n.side, 'noun_pronoun', n.word, p.word
from (select example, side, word, sentence from words join word_features using (example, side, word)
      where feature = 'NOUN') as n
join (select example, side, word, sentence from words join word_features using (example, side, word)
      where feature = 'PRON') as p using (example, side, sentence)
union all
select a.example, a.side, 'same_tag', a.word, b.word
from words as a
join words as b using (example, side)
where coalesce(a.upos, a.xpos) = coalesce(b.upos, b.xpos) and a.word <> b.word
union all
select distinct a.example, 'source', 'same_entity', a.head_word, b.head_word
from mentions as a
join mentions as b using (example, cluster)
where a.head_word <> b.head_word
union all
select a.example, a.side, 'same_form', a.word, b.word
from words as a
join words as b using (example, side)
where lower(a.form) = lower(b.form) and a.word <> b.word and regexp_matches(a.form, '[\p{L}\p{N}]')
union all
select distinct l.example, 'source', 'links', s.word, t.word
from links as l
join words as s on s.example = l.example and s.side = 'source'
join words as t on t.example = l.example and t.side = 'source'
where
    s.word >= l.source_start_word and s.word < l.source_end_word
    and t.word >= l.target_start_word and t.word < l.target_end_word
    and s.word <> t.word
