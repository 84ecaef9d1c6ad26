-- How far the attention between words follows pairs that have a property, such as a dependency or one entity.
--
-- share: the weight on such pairs out of all weight between different words; edge_share: their share of the pairs with
-- a weight over `above`, with a 95 % interval (Wilson). `background` is their share of all pairs. All are null where
-- no pair of the store has the property. The view `word_pairs` says what the properties are; `links` takes pairs of
-- your own, from `attnstore annotate --links`.
-- reads:   alignment_facts(property=$property, above=$above, pieces=$pieces)
-- needs:   words, relations if property=governor, relations if property=subject_verb, tags if property=noun_pronoun,
--          tags if property=same_tag, mentions if property=same_entity, links if property=links
-- params:  kind text = null, above real = 0.3, pieces text in (mean, first, max) = mean,
--          property text in (governor, subject_verb, noun_pronoun, same_tag, same_entity, same_form, links) = governor
-- returns: layer, head, share [0-1], edge_share [0-1], edge_low [0-1], edge_high [0-1], background [0-1],
--          n [pairs over `above`]
-- source:  Vig and Belinkov 2019; Vig et al. 2021
-- paint:   share, layers(share, line=background)
with sums as (
    select
        layer, head,
        sum(mass) as mass, sum(total) as total, sum(aligned_edges) as aligned_edges, sum(edges) as edges,
        nullif(sum(n_property), 0) as n_property, sum(n_pairs) as n_pairs
    from alignment_facts
    where kind = $kind
    group by layer, head
),
shares as (
    select
        layer, head,
        if(n_property is not null, mass / nullif(total, 0), null) as share,
        if(n_property is not null, aligned_edges / nullif(edges, 0), null) as edge_share,
        n_property / n_pairs as background,
        edges,
        1.959964 ** 2 / nullif(edges, 0) as z2_n
    from sums
),
intervals as (
    select
        *,
        (edge_share + z2_n / 2) / (1 + z2_n) as centre,
        sqrt(z2_n * (edge_share * (1 - edge_share) + z2_n / 4)) / (1 + z2_n) as half
    from shares
)
select
    layer, head, share, edge_share,
    if(centre is not null, greatest(centre - half, 0), null) as edge_low,
    if(centre is not null, least(centre + half, 1), null) as edge_high,
    background,
    edges::bigint as n
from intervals
order by layer, head
