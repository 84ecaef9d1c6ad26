"""This file says what is read off an answer for a cell of docs/papers.md, and whether two cells say the same.

    highest VALUE            row with the largest VALUE: `2-8 0.801 (n 1062)`, layer and head from 0 where it has them
    lowest VALUE             the same for the smallest
    VALUE                    the one row that is left: `0.335 (n 10952)`
    mean VALUE               over all rows that are left
    mean VALUE by COLUMN     means over the rows of each COLUMN, in its order: `0.03 0.34 0.36`
    heads with VALUE > 0.5   how many: `4 of 72`
    rows                     how many rows are left

Each may end in `, COLUMN = VALUE` as often as needed: only such rows are left.
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]

READING = re.compile(
    r"(?:(?P<end>highest|lowest) |(?P<mean>mean )|heads with )?(?P<value>\w+)(?: by (?P<by>\w+))?"
    r"(?: > (?P<over>[\d.]+))?(?P<filters>(?:, \w+ = [^,]+)*)"
)


def cell(rows: Sequence[Row], readings: Sequence[str]) -> str:
    """Several readings of one answer, named by what was asked for; an n that all share stands at the end."""
    values = [name + read(rows, reading) for name, reading in zip(labels(readings), readings, strict=True)]
    shared = {re.sub(r"^.*?( \(n \d+\))?$", r"\1", value) for value in values}
    if len(shared) == 1 and (n := shared.pop()):
        return "; ".join(value.removesuffix(n) for value in values) + n
    return "; ".join(values)


def read(rows: Sequence[Row], reading: str) -> str:
    """What a reading finds in an answer, as the page prints it."""
    found = READING.fullmatch(reading)
    assert found, f"not a reading: {reading!r}"
    for condition in found["filters"].split(", ")[1:]:
        column, _, wanted = condition.partition(" = ")
        rows = [row for row in rows if str(row[column]) == wanted]
    name = found["value"]
    if name == "rows":
        return str(len(rows))
    rows = [row for row in rows if row[name] is not None]
    if not rows:
        return "none"
    if found["over"]:
        many = sum(row[name] > float(found["over"]) for row in rows)
        return f"{many} of {len(rows)}"
    if found["by"]:
        groups: dict[Any, list[float]] = {}
        for row in rows:
            groups.setdefault(row[found["by"]], []).append(row[name])
        return _in_a_row([sum(group) / len(group) for _, group in sorted(groups.items())]) + _n(rows)
    if found["mean"]:
        return printed(sum(row[name] for row in rows) / len(rows)) + _n(rows)
    if found["end"]:
        sign = 1 if found["end"] == "lowest" else -1
        rows = sorted(rows, key=lambda row: sign * row[name])[:1]
    assert len(rows) == 1, f"{len(rows)} rows are left of {reading!r}"
    (row,) = rows
    head = f"{row['layer']}-{row['head']} " if row.get("head") is not None and found["end"] else ""
    return head + printed(row[name]) + _n(rows)


def _asked(condition: str) -> str:
    column, _, value = condition.partition(" = ")
    return column if value == "True" else value


def labels(readings: Sequence[str]) -> list[str]:
    """What tells the values of a cell apart: nothing for one, else what was filtered for, else how it was read."""
    if len(readings) == 1:
        return [""]
    found = [" ".join(map(_asked, reading.split(", ")[1:])) for reading in readings]
    if "" in found or len(set(found)) < len(found):
        ways = [reading.split(",")[0].partition(" by ")[0] for reading in readings]
        found = [f"{way} {name}" for way, name in zip(ways, found, strict=True)]
    return [f"{name.strip()}: " for name in found]


ARROWS = {"dep_to_head": "d→h", "head_to_dep": "h→d"}


def of_relation(rows: Sequence[Row], relation: str) -> str:
    """The row of one relation as Table 1 has it, in percent: accuracy / baseline (offset) head, direction, n."""
    (row,) = (row for row in rows if row["relation"] == relation)
    scores = f"{100 * row['accuracy']:.1f} / {100 * row['baseline']:.1f} ({row['offset']:+d})"
    return f"{scores} {row['layer']}-{row['head']} {ARROWS[row['direction']]}, n {row['n']}"


def printed(value: Any) -> str:
    """A number with three places after the point, a count or a text as it is."""
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def _in_a_row(values: Sequence[float]) -> str:
    """Numbers with two places after the point; where all are small, to the largest one's second digit."""
    largest = max(map(abs, values))
    places = 2 if largest >= 0.02 or largest == 0 else 1 - math.floor(math.log10(largest))
    return " ".join(f"{value:.{places}f}" for value in values)


def _n(rows: Sequence[Row]) -> str:
    """The n behind a value, where all rows have one."""
    counts = {row.get("n") for row in rows}
    return f" (n {counts.pop()})" if len(counts) == 1 and None not in counts else ""


NUMBER = re.compile(r"(?<![\w.-])-?\d+\.\d+")


def agree(said: str, found: str) -> bool:
    """Whether two cells say the same: heads, counts and words exactly, numbers within one of their last place."""
    if NUMBER.sub("#", said) != NUMBER.sub("#", found):
        return False
    pairs = zip(NUMBER.findall(said), NUMBER.findall(found), strict=True)
    return all(abs(float(a) - float(b)) < 1.01 * 10.0 ** -len(a.partition(".")[2]) for a, b in pairs)
