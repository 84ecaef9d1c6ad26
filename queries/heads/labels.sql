-- What each head mostly does, by thresholds: next, previous, broad, cls, sep or punct; null where none is reached.
--
-- Rules are tried in this order and a later one overrides an earlier. `broad` is in nats and fits inputs of about 128
-- tokens; with `broad_share` it is that share of the entropy of uniform attention instead.
-- reads:   head_facts(eps=$eps)
-- params:  kind text = null, next real = 0.5, previous real = 0.5, broad real = 3.8, broad_share real = null,
--          cls real = 0.6, sep real = 0.6, punct real = 0.6, eps real = 0.0001,
--          compat text in (strict, clark) = strict
-- returns: layer, head, label, value [what passed the threshold: weight 0-1, or nats], n [examples]
-- source:  Clark et al. 2019, section 6
-- paint:   grid(label), grid(value)
with labelled as (
    select
        *,
        case
            when punct > $punct then 'punct'
            when sep > $sep then 'sep'
            when cls > $cls then 'cls'
            when entropy_nats > coalesce($broad_share * uniform_nats, $broad) then 'broad'
            when if($compat = 'clark', previous_clark, previous) > $previous then 'previous'
            when if($compat = 'clark', next_clark, next) > $next then 'next'
        end as label
    from head_means
    where kind = $kind
)
select
    layer, head, label,
    case label
        when 'punct' then punct
        when 'sep' then sep
        when 'cls' then cls
        when 'broad' then entropy_nats
        when 'previous' then if($compat = 'clark', previous_clark, previous)
        when 'next' then if($compat = 'clark', next_clark, next)
    end as value,
    n
from labelled
order by layer, head
