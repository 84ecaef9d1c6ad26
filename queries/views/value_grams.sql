-- One row for each key token and layer: products of what its heads move from the token at weight 1, and with its stream.
select
    f.example, f.kind, f.layer, f.token, f.gram, f.stream, f.square, f.gram_ln, f.stream_ln, f.square_ln, f.scale,
    h.keys as side
from stored.value_grams as f
join (select distinct kind, keys from stored.heads) as h using (kind)
