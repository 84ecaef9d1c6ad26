"""This file makes bars: values beside what they have to beat, and the shares of a whole."""

import numpy as np

from attnstore.store.figures.panels import Bar, Bars
from attnstore.store.figures.rows import Rows


def bars(rows: Rows, title: str) -> list[Bars]:
    """A bar for each row, named by `by`, with its baseline and interval marked and `label` beside its number."""
    columns = (rows.numbers(role) for role in ("value", "baseline", "low", "high"))
    found = [
        Bar(name, [value], baseline, (low, high), note)
        for name, value, baseline, low, high, note in zip(
            rows.texts("by"), *(column.tolist() for column in columns), rows.texts("label"), strict=True
        )
    ]
    value = rows.name("value")
    return [Bars(f"{title}: {value}", [value], found, rows.name("baseline") if rows.has("baseline") else "")]


def stack(rows: Rows, title: str) -> list[Bars]:
    """A bar of length 1 for each value of `by`: the share of each value of `of` in the sum of the column there.

    The picture is that of Kovaleva et al. 2019, figure 2. Null and values below 0 add nothing. Where `by` is null
    throughout there is one bar.
    """
    parts = rows.distinct("of")
    found = []
    names = rows.distinct("by")
    for name in names or [None][: len(rows)]:
        chosen = rows.where("by", name)
        values, kinds = chosen.numbers("value"), chosen.values("of")
        sums = np.zeros(len(parts))
        for value, kind in zip(values, kinds, strict=True):
            if np.isfinite(value) and value > 0 and kind is not None:
                sums[parts.index(kind)] += value
        total = sums.sum()
        shares = sums / total if total else np.full(len(parts), np.nan)
        said = "" if rows.is_text("by") else f"{rows.name('by')} "
        found.append(Bar(f"{said}{name}" if names else "all", shares.tolist()))
    return [
        Bars(f"{title}: {rows.name('value')} by {rows.name('of')}", [str(part) for part in parts], found, is_whole=True)
    ]
