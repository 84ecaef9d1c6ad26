"""This file finds which example of one store is which of another: by their tokens, else by name and text."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from attnstore.errors import BadInput
from attnstore.store.database import Database

LEVELS = {"token": "equal_tokens", "word": "equal_words"}
"""What examples have to have in common for their maps to be compared: a column of `pairs`."""

PAIRS = pa.schema(
    [("example_a", pa.int32()), ("example_b", pa.int32()), ("equal_tokens", pa.bool_()), ("equal_words", pa.bool_())]
)
UNPAIRED = pa.schema([("store", pa.string()), ("example", pa.int32()), ("name", pa.string()), ("reason", pa.string())])

# Equal inputs are interchangeable, so that of several the first of one store goes with the first of the other.
_INPUTS = """
    inputs_{store} as materialized (
        with tokens as (
            select
                example,
                md5(string_agg(
                    concat_ws(chr(31), side, token_id, coalesce(type_id, 0), coalesce(special, ''), coalesce(text, '')),
                    chr(30) order by side, token
                )) as token_hash
            from {store}.tokens group by example
        ),
        words as (
            select
                example,
                md5(string_agg(concat_ws(chr(31), side, coalesce(form, '')), chr(30) order by side, word)) as word_hash
            from {store}.words group by example
        )
        select
            example, name, token_hash, word_hash,
            if(text is not null, md5(concat_ws(chr(31), text, 'B' || second, 'C' || target)), null) as text_hash,
            row_number() over (partition by token_hash order by name, example) as nth_of_tokens
        from {store}.examples left join tokens using (example) left join words using (example)
    )
"""
_PAIRS = f"""
    with
    {_INPUTS.format(store="a")},
    {_INPUTS.format(store="b")},
    by_tokens as materialized (
        select a.example as example_a, b.example as example_b
        from inputs_a as a join inputs_b as b using (token_hash, nth_of_tokens)
    ),
    rest_a as (
        select *, row_number() over (partition by name order by example) as nth
        from inputs_a where example not in (select example_a from by_tokens)
    ),
    rest_b as (
        select *, row_number() over (partition by name order by example) as nth
        from inputs_b where example not in (select example_b from by_tokens)
    ),
    every as (
        select *, true as equal_tokens from by_tokens
        union all
        select a.example, b.example, false
        from rest_a as a join rest_b as b using (name, nth)
        where a.text_hash = b.text_hash or a.word_hash = b.word_hash
    )
    select
        a.example as example_a, b.example as example_b, equal_tokens,
        coalesce(a.word_hash = b.word_hash, false) as equal_words,
        coalesce(a.name, b.name) as name,
        if(a.name in (select name from inputs_b) or b.name in (select name from inputs_a), 'text', 'name') as reason
    from every
    full join inputs_a as a on a.example = example_a
    full join inputs_b as b on b.example = example_b
    order by a.example, b.example
"""
# The first example of A that cannot be compared, with the one of its name in B.
_FIRST = """
    select
        a.name, a.text as text_a, b.text as text_b, b.example is not null as there,
        (select count(*) from a.tokens where example = a.example) as n_a,
        (select count(*) from b.tokens where example = b.example) as n_b,
        a.n_words as words_a, b.n_words as words_b
    from a.examples as a left join b.examples as b on b.name = a.name
    order by a.example, b.example limit 1
"""


class Pairs(NamedTuple):
    """The tables PAIRS and UNPAIRED.

    An example has one partner at most. A pair that has not equal tokens has equal names, and equal texts or words.
    The reason is `name` where the other store has no example of that name, `text` where its text is another.
    """

    pairs: pa.Table
    unpaired: pa.Table

    def count(self, column: str) -> int:
        """Pairs of which a column is true."""
        return int(np.count_nonzero(self.pairs[column].to_numpy()))

    def only(self, a: NDArray[np.int64], b: NDArray[np.int64]) -> "Pairs":
        """Those of these examples of either store; who lost its partner by that is not among the unpaired."""
        chosen = np.isin(self.pairs["example_a"].to_numpy(), a) & np.isin(self.pairs["example_b"].to_numpy(), b)
        store, example = (self.unpaired[name].to_numpy(zero_copy_only=False) for name in ("store", "example"))
        left = np.where(store == "a", np.isin(example, a), np.isin(example, b)).astype(bool)
        return Pairs(self.pairs.filter(pa.array(chosen)), self.unpaired.filter(pa.array(left)))


def find_pairs(database: Database) -> Pairs:
    """The pairs of two stores, from a database that shows both as `a` and `b`."""
    every = database.run(_PAIRS, doing="pairing the examples of two stores")
    given = [every[f"example_{store}"].is_valid().to_numpy() for store in ("a", "b")]
    pairs = every.filter(pa.array(given[0] & given[1])).select(PAIRS.names).cast(PAIRS)
    alone = [
        pa.table(
            {
                "store": [store] * len(rows),
                "example": rows[f"example_{store}"],
                "name": rows["name"],
                "reason": rows["reason"],
            }
        ).cast(UNPAIRED)
        for store, rows in (
            ("a", every.filter(pa.array(given[0] & ~given[1]))),
            ("b", every.filter(pa.array(given[1] & ~given[0]))),
        )
    ]
    return Pairs(pairs, pa.concat_tables(alone))


def check_pairs(database: Database, pairs: Pairs, level: str | None, doing: str) -> None:
    """Raise BadInput where stores with examples have none that can be compared: at a level, or at all for None."""
    if pairs.count(LEVELS[level]) if level else len(pairs.pairs):
        return
    found = database.run(_FIRST, doing=doing).to_pylist()
    if not found or not database.run("select 1 from b.examples limit 1", doing=doing).num_rows:
        return
    first = found[0]
    if not len(pairs.pairs):
        what = (
            f"the example {first['name']!r} reads {_cut(first['text_a'])} in A and {_cut(first['text_b'])} in B"
            if first["there"]
            else f"A has an example {first['name']!r} and B has none"
        )
        remedy = (
            "Ingest the same corpus with both models. compare/pairs lists who has no partner; compare/heads and "
            "compare/summary answer over different texts with paired=false"
        )
        raise BadInput(
            doing, f"no example of A is one of B: {what}", "examples of equal tokens, or name and text", remedy
        )
    if level == "token":
        raise BadInput(
            doing,
            f"no two examples have the same tokens: {first['name']!r} has {first['n_a']} in A and {first['n_b']} in B",
            "maps over equal tokens, so one tokenizer",
            "Their words are equal: ask with level=word" if pairs.count("equal_words") else _NO_WORDS,
        )
    counted = f"{first['name']!r} has {first['words_a']} in A and {first['words_b']} in B"
    raise BadInput(doing, f"no two examples have the same words: {counted}", "maps over equal words", _NO_WORDS)


_NO_WORDS = "Give both stores the same words, without a model: attnstore annotate STORE --words FILE.conllu"


def _cut(text: str | None) -> str:
    return "nothing" if text is None else repr(text if len(text) <= 60 else text[:59] + "…")
