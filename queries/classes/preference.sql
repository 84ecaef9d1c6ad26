-- Which heads behave differently by the class of the input, and which class each tells best from the others.
--
-- eta2 is the share of the statistic's variance that lies between classes, `eta2_chance` what shuffled labels give
-- on average. Class and direction are chosen on one half of the examples, and `auroc` is of the other half: 0.5 is
-- chance. Halves hold as many of each class, and a document or pair stays whole. Controls: `shuffled` deals the
-- labels out anew, so that few heads may have a small q and areas lie about 0.5; `luminance` takes out what the mean
-- brightness of an image explains. Inputs of a class are alike, so that heads of an untrained model differ between
-- classes as well: what a model has learnt is what it has beyond one with random weights. A statistic is the mean of
-- an example over its queries, or of its [CLS] row; `distance` is in tokens, `grid_distance` on the grid of patches.
-- Evidence from the model: `output_norm` is the length of what a head adds at [CLS], `logit_contribution` what it
-- adds to the true class's logit, `ablation_loss` how much the loss grows with the head set to zero.
-- reads:   class_tests(statistic=$statistic, control=$control, permutations=$permutations, seed=$seed)
-- needs:   labels, images if control=luminance, grid if statistic=grid_distance,
--          output_norms if statistic=output_norm, logit_contributions if statistic=logit_contribution,
--          ablated_heads if statistic=ablation_loss
-- params:  kind text = null,
--          statistic text in (cls_entropy, entropy, confidence, cls, distance, grid_distance, output_norm,
--          logit_contribution, ablation_loss) = cls_entropy,
--          control text in (none, shuffled, luminance) = none, permutations integer = 1000, seed integer from 0 = 0
-- returns: layer, head, eta2 [0-1], eta2_chance [0-1], h [Kruskal-Wallis], p, q [Benjamini-Hochberg over heads],
--          best_class, direction [higher; lower], auroc [0-1, held-out half], n [labelled examples], n_classes
-- source:  class preference of heads; Kruskal and Wallis 1952; Benjamini and Hochberg 1995
-- paint:   eta2, auroc, layers(eta2, line=eta2_chance)
select layer, head, eta2, eta2_chance, h, p, q, best_class, direction, auroc, n, n_classes
from class_tests
where kind = $kind
order by layer, head
