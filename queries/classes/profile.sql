-- How a statistic of each head lies in each class: its mean, and how many standard deviations from the mean of all.
--
-- A head that prefers a class has a d far from 0 there; classes/preference says whether that is more than chance.
-- reads:   class_profiles(statistic=$statistic)
-- needs:   labels, grid if statistic=grid_distance,
--          output_norms if statistic=output_norm, logit_contributions if statistic=logit_contribution,
--          ablated_heads if statistic=ablation_loss
-- params:  kind text = null,
--          statistic text in (cls_entropy, entropy, confidence, cls, distance, grid_distance, output_norm,
--          logit_contribution, ablation_loss) = cls_entropy,
--          layer integer = null, head integer = null
-- returns: layer, head, class, d [standard deviations of all], mean [of the statistic], n [examples]
-- source:  class preference of heads
-- paint:   grid(d, by=class)
select layer, head, class, d, mean, n
from class_profiles
where
    kind = $kind
    and ($layer is null or layer = $layer)
    and ($head is null or head = $head)
order by layer, head, class
