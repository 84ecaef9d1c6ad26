-- One row for each token and layer of self-attention: what is mixed into the token, and what is kept of it.
--
-- Mixing ratio: mix_norm / (mix_norm + pres_norm) of the heads alone, pres_norm_res in its place with the stream, and
-- the columns with _ln after the norm of the sum.
select
    f.example, f.kind, f.token,
    unnest(range(len(f.mix_norm)))::smallint as layer,
    unnest(f.self_weight) as self_weight,
    unnest(f.mix_norm) as mix_norm,
    unnest(f.pres_norm) as pres_norm,
    unnest(f.pres_norm_res) as pres_norm_res,
    unnest(f.mix_norm_ln) as mix_norm_ln,
    unnest(f.pres_norm_ln) as pres_norm_ln,
    unnest(f.x_norm) as x_norm,
    unnest(f.out_norm) as out_norm,
    unnest(f.cosine) as cosine,
    h.queries as side
from stored.mixing_facts as f
join (select distinct kind, queries from stored.heads) as h using (kind)
