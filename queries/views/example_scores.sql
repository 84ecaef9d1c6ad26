-- What each example adds to the metrics that are means: `total` over `n` examples, or targets for loss and language
-- models.
select head_set, task, example, 'loss' as metric, loss * n as total, n
from predictions
where n > 0 and loss is not null
union all
select head_set, task, example, 'accuracy', (predicted = gold)::double, 1
from predictions
where task = 'classification' and gold is not null
union all
select head_set, task, example, 'accuracy', score * n, n
from predictions
where task in ('masked_lm', 'causal_lm', 'translation') and n > 0 and score is not null
union all
-- Without case, punctuation and articles, as SQuAD's script compares answers.
select
    head_set, task, example, 'exact_match',
    (
        trim(regexp_replace(regexp_replace(regexp_replace(
            lower(predicted), '[!-/:-@\[-`{-~]', '', 'g'), '\b(a|an|the)\b', ' ', 'g'), '\s+', ' ', 'g'))
        = trim(regexp_replace(regexp_replace(regexp_replace(
            lower(gold), '[!-/:-@\[-`{-~]', '', 'g'), '\b(a|an|the)\b', ' ', 'g'), '\s+', ' ', 'g'))
    )::double, 1
from predictions
where task = 'answering' and gold is not null
union all
select head_set, task, example, 'f1', score, 1
from predictions
where task = 'answering' and gold is not null
union all
select head_set, task, example, 'score', score, 1
from predictions
where contains(task, ':') and score is not null
