-- What each example adds to a metric that is a mean, with a set of heads off and without: one row for each of them.
select s.head_set, s.metric, s.example, s.total, s.n, b.total as baseline_total, b.n as baseline_n
from example_scores as s
join example_scores as b on b.head_set = 'none' and b.example = s.example and b.metric = s.metric
