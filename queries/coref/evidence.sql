-- The sentences behind a number: which word one head chooses for mentions that have an antecedent.
--
-- Mentions, candidates, types and directions are those of coref/accuracy, so that its `n` and `correct` can be read
-- here line by line. `sentence` holds every sentence from the mention's to those of the chosen word and of the closest
-- antecedent, on whichever side; it begins at `first_word`. Words are numbered from 0 over the example.
-- With `weights = norm` weights are lengths: each times |f(x)|, that of what the head moves from the key at weight 1.
-- reads:   antecedents, mentions, words, examples, heads,
--          mention_facts(candidates=$candidates, pieces=$pieces, weights=$weights)
-- needs:   mentions, value_norms if weights=norm
-- params:  layer integer, head integer, kind text = null, type text in (all, pronoun, proper, nominal) = all,
--          direction text in (mention_to_antecedent, antecedent_to_mention) = mention_to_antecedent,
--          candidates text in (preceding_mention_heads, earlier_mention_heads, mention_heads, all_words)
--            = preceding_mention_heads,
--          determiners text in (pronoun, nominal) = pronoun, pieces text in (mean, first, max) = mean,
--          correct boolean = null, limit integer from 0 = 20,
--          weights text in (attention, norm) = attention
-- returns: example, name, sentence, mention [its text], head_word [its form], predicted [null where none],
--          antecedents [texts of the mentions that are right], weight [0-1], correct, word [of the head word],
--          predicted_word, gold_word [closest that is right], first_word
-- source:  Clark et al. 2019, section 4.3
-- paint:   evidence(sentence, word, predicted_word, gold_word, first_word, weight, correct, example)
with hits as (
    select
        a.example, a.mention, a.head_word as word, a.antecedents,
        if($direction = 'mention_to_antecedent', f.attends_to, f.attended_by)[h.position] as predicted_word,
        if($direction = 'mention_to_antecedent', f.attends_to_weight, f.attended_by_weight)[h.position] as weight,
        coalesce(list_contains(a.antecedents, predicted_word), false) as correct,
        list_min([[abs(o - a.head_word), o] for o in a.antecedents])[2] as gold_word
    from antecedents as a
    join stored.heads as h on h.kind = $kind and h.queries = 'source' and h.layer = $layer and h.head = $head
    join stored.mention_facts as f on f.example = a.example and f.mention = a.mention and f.kind = $kind
    where
        a.candidates = $candidates
        and ($type = 'all' or if(a.determiner and a.type is not null, $determiners, a.type) = $type)
        and ($correct is null or coalesce(list_contains(a.antecedents, predicted_word), false) = $correct)
    order by a.example, a.mention
    limit $limit
),
spans as (
    select h.example, h.mention, min(w.word) as first_word, max(w.word) as last_word
    from hits as h
    join words as end_word
        on end_word.example = h.example and end_word.side = 'source'
        and end_word.word in (h.word, h.predicted_word, h.gold_word)
    join words as w
        on w.example = h.example and w.side = 'source'
        and w.part = end_word.part and w.sentence = end_word.sentence
    group by h.example, h.mention
),
sentences as (
    select s.example, s.mention, s.first_word, string_agg(w.form, ' ' order by w.word) as text
    from spans as s
    join words as w
        on w.example = s.example and w.side = 'source' and w.word between s.first_word and s.last_word
    group by s.example, s.mention, s.first_word
),
texts as (
    select m.example, m.mention, m.cluster, m.head_word, string_agg(w.form, ' ' order by w.word) as text
    from mentions as m
    join words as w
        on w.example = m.example and w.side = 'source' and w.word >= m.start_word and w.word < m.end_word
    where m.example in (select example from hits)
    group by m.example, m.mention, m.cluster, m.head_word
)
select
    h.example, e.name, s.text as sentence, t.text as mention, head.form as head_word, predicted.form as predicted,
    (
        select string_agg(o.text, ' | ' order by o.mention)
        from texts as o
        where o.example = h.example and o.cluster = t.cluster and list_contains(h.antecedents, o.head_word)
    ) as antecedents,
    h.weight, h.correct, h.word, h.predicted_word, h.gold_word, s.first_word
from hits as h
join examples as e using (example)
join sentences as s using (example, mention)
join texts as t using (example, mention)
join words as head on head.example = h.example and head.side = 'source' and head.word = h.word
left join words as predicted
    on predicted.example = h.example and predicted.side = 'source' and predicted.word = h.predicted_word
order by h.example, h.mention
