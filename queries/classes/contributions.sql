-- What each head adds directly to the logit of an input's own class, class by class.
--
-- Directly: past all layers above, with the last norm's divisor as it is. `to_predicted` is the same for the class that
-- the model predicts. Only models with norms before their heads and one linear classifier have such sums.
-- needs:   logit_contributions, labels
-- reads:   logit_contributions, examples
-- params:  kind text = null
-- returns: layer, head, class, to_true [logits], to_predicted [logits], n [labelled examples]
-- source:  class preference of heads; direct logit attribution after Elhage et al. 2021
-- paint:   grid(to_true, by=class)
select
    c.layer, c.head, e.label as class, avg(c.true_class) as to_true, avg(c.predicted_class) as to_predicted,
    count(c.true_class) as n
from logit_contributions as c
join examples as e using (example)
where c.kind = $kind and e.label is not null
group by c.layer, c.head, e.label
order by c.layer, c.head, e.label
