-- One row for each way to choose `candidates` and each mention that has an antecedent among them.
--
-- `candidates` are the mentions that end before this one starts (preceding_mention_heads), that start before it, so
-- that one may contain it (earlier_mention_heads), all others of the example (mention_heads), or, for all_words,
-- every other word. Antecedents are mentions of the same cluster, for all_words those that precede. Two
-- mentions with one head word are one candidate, which is an antecedent if either is; a mention whose head word has
-- no tokens has no row, and none is its own antecedent. `antecedents` are the head words that are right, and
-- `n_candidates` head words could be chosen.
--
-- `nearest`, `head_match` and `rule_based` are the head words that text alone chooses: of the candidate whose head
-- word is closest (the first of two); of the closest with the same lower-cased head word (null for none); and of the
-- closest one in the first sieve that has any: the same lower-cased text, the same head word, agreement, any.
-- Mentions agree if their person is the same and number and gender do not differ. Forms of I and we are first, of you
-- second, all others third person. NNS, NNPS and forms of we, they, these and those are plural; NN, NNP and forms of
-- I, he, she, it, this and that are singular. Forms of he, she and it have gender. All else is open, and fits.
with described as (
    select
        m.example, m.mention, m.cluster, m.start_word, m.end_word, m.head_word, m.type, h.aligned,
        h.upos is not distinct from 'DET' as determiner,
        lower(h.form) as head_form,
        (
            select string_agg(lower(w.form), ' ' order by w.word)
            from words as w
            where w.example = m.example and w.side = 'source' and w.word >= m.start_word and w.word < m.end_word
        ) as text,
        case
            when head_form in ('i', 'me', 'my', 'mine', 'myself', 'we', 'us', 'our', 'ours', 'ourselves') then 1
            when head_form in ('you', 'your', 'yours', 'yourself', 'yourselves') then 2
            else 3
        end as person,
        case
            when
                h.xpos in ('NNS', 'NNPS')
                or head_form in (
                    'we', 'us', 'our', 'ours', 'ourselves',
                    'they', 'them', 'their', 'theirs', 'themselves', 'these', 'those'
                ) then 'plural'
            when
                h.xpos in ('NN', 'NNP')
                or head_form in (
                    'i', 'me', 'my', 'mine', 'myself', 'he', 'him', 'his', 'himself',
                    'she', 'her', 'hers', 'herself', 'it', 'its', 'itself', 'this', 'that'
                ) then 'singular'
        end as number,
        case
            when head_form in ('he', 'him', 'his', 'himself') then 'masculine'
            when head_form in ('she', 'her', 'hers', 'herself') then 'feminine'
            when head_form in ('it', 'its', 'itself') then 'neuter'
        end as gender
    from mentions as m
    join words as h on h.example = m.example and h.side = 'source' and h.word = m.head_word
),
pairs as (
    select
        c.candidates, m.example, m.mention, m.head_word, m.type, m.determiner, o.head_word as other,
        o.cluster = m.cluster as is_right,
        2 * abs(o.head_word - m.head_word) + (o.head_word > m.head_word)::bigint as distance,
        o.head_form = m.head_form as same_head,
        case
            when o.text = m.text then 1
            when o.head_form = m.head_form then 2
            when
                o.person = m.person
                and coalesce(o.number = m.number, true)
                and coalesce(o.gender = m.gender, true) then 3
            else 4
        end as sieve
    from described as m
    join described as o on o.example = m.example and o.head_word <> m.head_word
    join (
        select unnest(['preceding_mention_heads', 'earlier_mention_heads', 'mention_heads', 'all_words']) as candidates
    ) as c
        on case c.candidates
            when 'earlier_mention_heads' then o.start_word < m.start_word
            when 'mention_heads' then true
            else o.end_word <= m.start_word
        end
    where m.aligned <> 'none'
),
sizes as (
    select example, count(*) - 1 as n_others
    from words
    where side = 'source'
    group by example
)
select
    p.candidates, p.example, p.mention, p.head_word, p.type, p.determiner,
    list_sort(list(distinct p.other) filter (p.is_right)) as antecedents,
    if(p.candidates = 'all_words', any_value(s.n_others), count(distinct p.other)) as n_candidates,
    arg_min(p.other, p.distance) as nearest,
    arg_min(p.other, p.distance) filter (p.same_head) as head_match,
    arg_min(p.other, (p.sieve, p.distance)) as rule_based
from pairs as p
join sizes as s using (example)
group by p.candidates, p.example, p.mention, p.head_word, p.type, p.determiner
having bool_or(p.is_right)
