-- One row for each map: its pattern features, and the pattern that the documented rules make of them.
select
    example, kind, layer, head, vertical, neighbour, diagonal, block, spread,
    case
        when vertical >= 0.5 and neighbour < 0.25 then 'vertical'
        when neighbour + diagonal >= 0.5 and vertical < 0.25 then 'diagonal'
        when vertical + neighbour + diagonal >= 0.7 and vertical >= 0.25 and neighbour + diagonal >= 0.25
            then 'vertical_diagonal'
        when block >= 0.3 then 'block'
        else 'heterogeneous'
    end as pattern
from pattern_facts
