-- Which head, in which direction, knows each relation best, and how well a fixed offset does.
--
-- Definitions are those of relations/accuracy and relations/baselines; root and punct are not listed. `directions` are
-- those of the paper's Table 1, dep_to_head and head_to_dep, or also head_row. Ties go to the lowest layer and head,
-- then to the direction by name, and to the lowest offset. `compat = clark` passes over heads and offsets without an
-- error, as the paper's code does.
--
-- By default head, direction and offset are chosen on the words that they are scored on, as in the paper, which
-- flatters them. `held_out = odd` chooses on the even half of the documents and scores on the odd one, `even` the
-- other way round (see the view `halves`): ask both, since each leaves half of the words out.
--
-- `bootstrap` resamples the scored sentences so often, with replacement, and gives the 2.5 and 97.5 percentiles of
-- the accuracy and of the gain. Head, direction and offset stay those that were chosen, so that the intervals do not
-- cover the choice. Equal seeds give equal intervals.
--
-- With `weights = norm` a weight counts times |f(x)|, the length of what the head moves from the key at weight 1.
-- reads:   relations, words, halves, heads, word_facts(pieces=$pieces, weights=$weights)
-- needs:   relations, value_norms if weights=norm
-- params:  kind text = null, relation text = null, deprel_level text in (base, full) = full,
--          words text in (all, all_no_punct, all_no_punct_no_root) = all, derived boolean = true,
--          directions text in (published, all) = published, possessive boolean = false,
--          pieces text in (mean, first, max) = mean, reach_back integer = 3, reach_ahead integer = 2,
--          min_count integer = 1, held_out text in (no, odd, even) = no, bootstrap integer from 0 = 0,
--          seed integer from 0 = 0, compat text in (strict, clark) = strict,
--          weights text in (attention, norm) = attention
-- returns: relation, n [dependents scored], layer, head, direction [dep_to_head; head_row; head_to_dep],
--          accuracy [0-1], baseline [accuracy of the offset, 0-1], offset [words],
--          head_label [layer-head, from 1 as papers print], derived [not annotated],
--          accuracy_low [null without bootstrap], accuracy_high, gain [accuracy - baseline],
--          gain_low [null without bootstrap], gain_high
-- source:  Clark et al. 2019, Table 1
-- paint:   bars(accuracy, baseline, by=relation, label=head_label, low=accuracy_low, high=accuracy_high),
--          bars(gain, by=relation, label=head_label, low=gain_low, high=gain_high)
with folds as (  -- chosen in fold 0 and scored in fold 1, or both in fold 0
    select example, case $held_out when 'no' then 0 when 'odd' then half else 1 - half end as fold
    from halves
),
sentences as materialized (
    select
        w.example, w.side, w.part, w.sentence, e.fold,
        min(w.word) - 1 as root, max(w.word) as last_word,
        row_number() over (partition by e.fold order by w.example, w.part, w.sentence) as number
    from words as w
    join folds as e using (example)
    where w.side = (select any_value(queries) from heads where kind = $kind) and $kind <> 'cross'
    group by w.example, w.side, w.part, w.sentence, e.fold
),
arcs as materialized (
    select
        r.example, r.side, r.part, r.sentence, e.fold, r.governor, r.derived,
        if($possessive, coalesce(r.clitic, r.word), r.word) as dependent,
        if($deprel_level = 'base', split_part(r.deprel, ':', 1), r.deprel) as relation
    from relations as r
    join folds as e using (example)
    where
        r.side = (select any_value(queries) from heads where kind = $kind)
        and $kind <> 'cross'
        and ($derived or not r.derived)
        and ($words = 'all' or split_part(r.deprel, ':', 1) <> 'punct')
        and ($words <> 'all_no_punct_no_root' or split_part(r.deprel, ':', 1) <> 'root')
),
placed as (
    select a.*, s.number, s.root, s.last_word
    from arcs as a
    join sentences as s using (example, side, part, sentence, fold)
),
-- Rows that meet lists over heads are few and narrow: a number stands for the relation, and one row of lists serves both
-- of the paper's directions.
buckets as materialized (
    select relation, derived, fold, (row_number() over ())::smallint as bucket, count(*) as n
    from arcs
    group by relation, derived, fold
),
asked as materialized (
    select b.bucket, a.example, a.dependent, a.governor
    from arcs as a
    join buckets as b using (relation, derived, fold)
),
by_dependent as not materialized (
    select a.bucket, a.governor, f.attends_to, f.attended_by
    from asked as a
    join stored.word_facts as f on f.example = a.example and f.word = a.dependent
    where f.kind = $kind
),
by_governor as not materialized (
    select a.bucket, a.dependent, f.attends_to
    from asked as a
    join stored.word_facts as f on f.example = a.example and f.word = a.governor
    where f.kind = $kind and $directions = 'all'
),
-- The word that a row or column weighs most is the one that would be right.
bucket_hits as (
    select 'dep_to_head' as direction, p.bucket, h.position, count(*) as correct
    from by_dependent as p
    join stored.heads as h on p.attends_to[h.position] = p.governor
    where h.kind = $kind
    group by p.bucket, h.position
    union all
    select 'head_to_dep', p.bucket, h.position, count(*)
    from by_dependent as p
    join stored.heads as h on p.attended_by[h.position] = p.governor
    where h.kind = $kind
    group by p.bucket, h.position
    union all
    select 'head_row', p.bucket, h.position, count(*)
    from by_governor as p
    join stored.heads as h on p.attends_to[h.position] = p.dependent
    where h.kind = $kind
    group by p.bucket, h.position
),
hits as (
    select b.relation, b.derived, b.fold, h.direction, h.position, h.correct
    from bucket_hits as h
    join buckets as b using (bucket)
),
offset_hits as (
    select
        relation, derived, fold, o.offset,
        count(*) filter (
            greatest(root, least(last_word, dependent + o.offset)) = coalesce(governor, root)
        ) as correct
    from placed, (select unnest(range(-$reach_back, $reach_ahead + 1)) as offset) as o
    group by relation, derived, fold, o.offset
),
totals as (
    select relation, derived, fold, n
    from buckets
),
every_total as (
    from totals
    union all
    select 'all', false, fold, sum(n)::bigint
    from totals
    where not derived
    group by fold
),
head_scores as (
    select t.relation, t.derived, t.fold, t.n, d.direction, h.position, coalesce(e.correct, 0) as correct
    from every_total as t
    cross join stored.heads as h
    cross join (
        select unnest(['dep_to_head', 'head_to_dep', 'head_row']) as direction
    ) as d
    left join (
        from hits
        union all
        select 'all', false, fold, direction, position, sum(correct)::bigint
        from hits
        where not derived
        group by fold, direction, position
    ) as e using (relation, derived, fold, direction, position)
    where h.kind = $kind and (d.direction <> 'head_row' or $directions = 'all')
),
offset_scores as (
    from offset_hits
    union all
    select 'all', false, fold, "offset", sum(correct)::bigint
    from offset_hits
    where not derived
    group by fold, "offset"
),
chosen_head as (
    select relation, derived, direction, position
    from head_scores
    where fold = 0 and ($compat = 'strict' or correct < n)
    qualify row_number() over (partition by relation, derived order by correct desc, position, direction) = 1
),
chosen_offset as (
    select relation, derived, "offset"
    from offset_scores
    join every_total using (relation, derived, fold)
    where fold = 0 and ($compat = 'strict' or correct < n)
    qualify row_number() over (partition by relation, derived order by correct desc, "offset") = 1
),
chosen as materialized (
    select
        s.relation, s.derived, s.n, s.direction, s.position, "offset",
        s.correct / s.n as accuracy, o.correct / s.n as baseline
    from head_scores as s
    join chosen_head using (relation, derived, direction, position)
    join offset_scores as o using (relation, derived, fold)
    join chosen_offset using (relation, derived, "offset")
    where
        s.fold = if($held_out = 'no', 0, 1)
        and s.n >= $min_count
        and s.relation not in ('root', 'punct')
        and ($relation is null or s.relation = $relation)
),
-- From here on the bootstrap: what was chosen, sentence by sentence, and how often each sentence is drawn.
scored_arcs as (
    select relation, example, number, derived, dependent, governor, root, last_word
    from placed
    where fold = if($held_out = 'no', 0, 1)
),
by_sentence as (
    select
        c.relation, c.derived, a.number,
        count(*) as n,
        count(*) filter (
            if(c.direction = 'head_to_dep', f.attended_by, f.attends_to)[c.position]
            = if(c.direction = 'head_row', a.dependent, a.governor)
        ) as correct,
        count(*) filter (
            greatest(a.root, least(a.last_word, a.dependent + c.offset)) = coalesce(a.governor, a.root)
        ) as offset_correct
    from (
        from scored_arcs
        union all
        select 'all', * exclude (relation) from scored_arcs where not derived
    ) as a
    join chosen as c using (relation, derived)
    left join stored.word_facts as f
        on f.example = a.example and f.word = if(c.direction = 'head_row', a.governor, a.dependent)
        and f.kind = $kind
    group by c.relation, c.derived, a.number
),
draws as (
    select resample, number, count(*) as times
    from (
        select
            r.resample,
            md5_number_lower($seed || '/' || r.resample || '/' || s.number) % count(*) over (partition by r.resample)
                + 1 as number
        from sentences as s, (select unnest(range($bootstrap)) as resample) as r
        where s.fold = if($held_out = 'no', 0, 1)
    )
    group by resample, number
),
resampled as (
    select
        relation, derived,
        sum(times * correct) / sum(times * n) as accuracy,
        sum(times * (correct - offset_correct)) / sum(times * n) as gain
    from by_sentence
    join draws using (number)
    group by relation, derived, resample
),
intervals as (
    select
        relation, derived,
        quantile_cont(accuracy, 0.025) as accuracy_low, quantile_cont(accuracy, 0.975) as accuracy_high,
        quantile_cont(gain, 0.025) as gain_low, quantile_cont(gain, 0.975) as gain_high
    from resampled
    where $bootstrap > 0  -- known when DuckDB plans: without a bootstrap none of it runs
    group by relation, derived
)
select
    c.relation, c.n, h.layer, h.head, c.direction, c.accuracy, c.baseline, c.offset,
    (h.layer + 1) || '-' || (h.head + 1) as head_label,
    c.derived, i.accuracy_low, i.accuracy_high, c.accuracy - c.baseline as gain, i.gain_low, i.gain_high
from chosen as c
join stored.heads as h on h.kind = $kind and h.position = c.position
left join intervals as i using (relation, derived)
order by c.relation <> 'all', c.n desc, c.relation
