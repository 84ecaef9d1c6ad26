-- One row for each map: how much of it is vertical, diagonal, next to the diagonal, or within a part.
select example, kind, layer, head, vertical, neighbour, diagonal, block, spread
from stored.pattern_facts
