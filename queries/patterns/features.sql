-- How much of each map is vertical, diagonal or a block, and the pattern that rules make of it.
--
-- vertical: weight on special tokens; neighbour and diagonal: on the tokens beside and on itself, special keys left
-- out; block: weight within the query's own part beyond that part's share of tokens, null for one text; spread: entropy
-- over that of uniform attention. The rules are ours: the paper's labels and classifier were not released. They are
-- vertical if vertical >= 0.5 and neighbour < 0.25; diagonal if neighbour + diagonal >= 0.5 and vertical < 0.25;
-- vertical_diagonal if the three sum to 0.7 and both vertical and neighbour + diagonal reach 0.25; block if >= 0.3.
-- reads:   pattern_facts, examples
-- params:  kind text = null, example integer = null, layer integer = null, head integer = null
-- returns: example, label [of the example], layer, head, vertical [weight, 0-1], neighbour [weight, 0-1],
--          diagonal [weight, 0-1], block, spread [0-1],
--          pattern [vertical; diagonal; vertical_diagonal; block; heterogeneous]
-- source:  Kovaleva et al. 2019, section 4.1
select p.example, e.label, p.layer, p.head, p.vertical, p.neighbour, p.diagonal, p.block, p.spread, p.pattern
from map_patterns as p
join examples as e using (example)
where
    p.kind = $kind
    and ($example is null or p.example = $example)
    and ($layer is null or p.layer = $layer)
    and ($head is null or p.head = $head)
order by p.example, p.layer, p.head
