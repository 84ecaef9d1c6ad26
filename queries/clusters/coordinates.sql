-- Heads as points in the plane: those that attend alike lie together.
--
-- Metric multidimensional scaling of the distances of clusters/distances (scikit-learn, five starts, seeded).
-- Directions mean nothing: only distances do. `root` takes the square root of the divergence, which is a metric. The
-- label is what the head mostly does, by the thresholds of heads/labels: `broad` is an entropy over 3.8 nats, which
-- fits inputs of about 128 tokens, or with `broad_share` over that share of the entropy of uniform attention. Needs
-- the extra `analysis`.
-- reads:   head_coordinates(eps=$eps, sampled=$sampled, seed=$seed, root=$root), head_facts
-- params:  kind text = null, eps real = 0.001, sampled integer = null, seed integer from 0 = 0, root boolean = false,
--          broad_share real = null
-- returns: layer, head, x, y, label [next; previous; broad; cls; sep; punct; other], stress [of the whole picture, 0-1],
--          head_label [layer-head, from 1 as papers print]
-- source:  Clark et al. 2019, section 6 and figure 6
-- paint:   scatter(x, y, label=head_label, by=label), scatter(x, y, by=layer)
select
    c.layer, c.head, c.x, c.y,
    case
        when m.punct > 0.6 then 'punct'
        when m.sep > 0.6 then 'sep'
        when m.cls > 0.6 then 'cls'
        when m.entropy_nats > coalesce($broad_share * m.uniform_nats, 3.8) then 'broad'
        when m.previous > 0.5 then 'previous'
        when m.next > 0.5 then 'next'
        else 'other'
    end as label,
    c.stress,
    (c.layer + 1) || '-' || (c.head + 1) as head_label
from head_coordinates as c
left join head_means as m using (kind, layer, head)
where c.kind = $kind
order by c.layer, c.head
