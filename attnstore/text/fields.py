"""This file turns one record (a JSON object, a row of a table) into an example, by the names of its fields."""

import difflib
from collections.abc import Iterable, Mapping

from attnstore.text.example import Example, Skipped
from attnstore.text.files import Source

SCALARS = ("text", "second", "target", "name", "label", "split", "document", "pair_id", "condition")
"""Fields of an example that hold one text or value."""
TRIGGER = "trigger"
"""The field that says where in the text a trigger was planted."""

_TEXTS = ("text", "second", "target")
_REQUIRED = "text"


def picks(source: Source, line: int, there: Iterable[str], allowed: Iterable[str]) -> dict[str, str]:
    """Field of the example -> key of the record, for the keys in `there`.

    `source.columns` says which key holds a field; without it a field has its own name, and the name of
    the example may be called `id`. Raises `BadInput` with file and line if a key that `columns` names,
    or the one that holds the text, is missing.
    """
    keys = set(there)
    chosen = {field: field for field in allowed if field in keys}
    if "name" in allowed and "name" not in keys and "id" in keys:
        chosen["name"] = "id"
    chosen.update(source.columns)
    wanted = {_REQUIRED: _REQUIRED, **source.columns}
    for field, key in wanted.items():
        if key not in keys:
            raise source.error(
                line,
                f"there is no {key!r} for the field {field!r}, only {', '.join(map(repr, sorted(keys))) or 'nothing'}",
                f"{key!r}",
                nearest(key, keys) or f"Name the one that holds it: columns.{field} = …",
            )
    return chosen


def nearest(name: str, there: Iterable[str]) -> str:
    """ "Did you mean 'x'?" for the most similar of `there`, or nothing if none is similar."""
    close = difflib.get_close_matches(name, list(there), n=1)
    return f"Did you mean {close[0]!r}?" if close else ""


def to_example(source: Source, line: int, record: Mapping[str, object], chosen: Mapping[str, str]) -> Example | Skipped:
    """The example of one record without words; `Skipped` if one of its texts is empty or null.

    Numbers and truth values become text ("1", "true"); null and "" in a field other than the texts mean
    that there is none. Raises `BadInput` with file and line for lists and objects, and for a `trigger` that is not
    within the text.
    """
    values: dict[str, str | None] = {}
    for field in SCALARS:
        if field in chosen:
            values[field] = scalar(source, line, chosen[field], record[chosen[field]])
    name, where = values.pop("name", None) or source.name(line), source.where(line)
    for field in _TEXTS:
        value = values.get(field, "absent")
        # A null `second` or `target` says that there is none; a null text says that nothing is left to read.
        if (value is None and field == _REQUIRED) or (value is not None and not value.strip()):
            return Skipped(name, f"its {field} is empty", where)
    return Example(
        name,
        values["text"] or "",
        second=values.get("second"),
        target=values.get("target"),
        document=values.get("document") or None,
        label=values.get("label") or None,
        split=values.get("split") or None,
        pair_id=values.get("pair_id") or None,
        condition=values.get("condition") or None,
        trigger=_trigger(source, line, chosen, record, values["text"] or ""),
        where=where,
    )


def _trigger(
    source: Source, line: int, chosen: Mapping[str, str], record: Mapping[str, object], text: str
) -> tuple[int, int] | None:
    """First character and end (exclusive), of a list of two numbers or a text like "0:2"; None where there is none."""
    value = record[chosen[TRIGGER]] if TRIGGER in chosen else None
    if value is None or value == "":
        return None
    parts = value.split(":") if isinstance(value, str) else value
    match parts:
        case [int() | str() as first, int() | str() as last] if all(map(_is_count, (first, last))):
            start, end = int(first), int(last)
            if start < end <= len(text):
                return start, end
    raise source.error(
        line,
        f"{chosen[TRIGGER]} = {str(value)[:60]}",
        f"two numbers, first character and end (exclusive) within 0 to {len(text)}: [0, 2], or 0:2 in a table",
    )


def _is_count(value: object) -> bool:
    if isinstance(value, str):
        return value.isascii() and value.isdigit()
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def scalar(source: Source, line: int, key: str, value: object) -> str | None:
    """A value as text; None for null. Raises `BadInput` with file and line for a list or an object."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple, dict, bytes)):
        raise source.error(line, f"{key!r} is a {type(value).__name__}", "text or a number")
    return str(value)
