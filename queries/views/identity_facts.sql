-- One row for each token and state: how like it is to what it was at first, and to which token's beginning most.
--
-- State 0 is what the first layer takes in, state n what layer n - 1 hands on; the last is what the last block gives.
select
    f.example, f.kind, f.token,
    unnest(range(len(f.cosine)))::smallint as state,
    unnest(f.cosine) as cosine,
    unnest(f.nearest) as nearest,
    unnest(f.hidden_norm) as hidden_norm,
    h.queries as side
from stored.identity_facts as f
join (select distinct kind, queries from stored.heads) as h using (kind)
