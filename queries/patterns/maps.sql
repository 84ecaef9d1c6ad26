-- Maps at one size, for a classifier of your own: each resampled to size x size by area averaging.
--
-- Give the classifier's answers back with `attnstore annotate --patterns`. `attnstore export` writes many in chunks.
-- reads:   resampled_facts(size=$size), examples
-- params:  kind text = null, size integer = 32, example integer = null, layer integer = null, head integer = null
-- returns: example, name, label [of the example], layer, head, weights [size * size, query by query]
-- source:  Kovaleva et al. 2019, section 4.1
select r.example, e.name, e.label, r.layer, r.head, r.weights
from resampled_facts as r
join examples as e using (example)
where
    r.kind = $kind
    and ($example is null or r.example = $example)
    and ($layer is null or r.layer = $layer)
    and ($head is null or r.head = $head)
order by r.example, r.layer, r.head
