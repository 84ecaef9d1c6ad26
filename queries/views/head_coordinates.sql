-- One row for each head: its place in the plane, from the distances between heads.
select kind, layer, head, x, y, stress
from stored.head_coordinates
