"""This file takes values of known types out of a JSON object, or says what is wrong with them."""

from collections.abc import Callable, Mapping, Sequence

from attnstore.errors import BadInput

Record = Mapping[str, object]
Fail = Callable[[str, str], BadInput]
"""Makes the error from what was found and what was expected."""


def list_of(name: str, value: object, fail: Fail) -> Sequence[object]:
    """A list; null stands for an empty one."""
    if value is None:
        return ()
    if not isinstance(value, list):
        raise fail(f"{name} is {type(value).__name__}", "a list")
    return value


def object_of(at: str, value: object, fail: Fail) -> Record:
    """An object."""
    if not isinstance(value, dict):
        raise fail(f"{at} is {type(value).__name__}", "an object")
    return value


def number_of(at: str, record: Record, key: str, fail: Fail) -> int | None:
    """A whole number, or None where there is none."""
    value = record.get(key)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        raise fail(f"{at} has {key} {value!r}", "a whole number")
    return value


def text_of(at: str, record: Record, key: str, fail: Fail) -> str | None:
    """Text, or None where there is none."""
    value = record.get(key)
    if value is not None and not isinstance(value, str):
        raise fail(f"{at} has {key} {value!r}", "text")
    return value


def truth_of(at: str, record: Record, key: str, fail: Fail) -> bool | None:
    """true or false, or None where there is neither."""
    value = record.get(key)
    if value is not None and not isinstance(value, bool):
        raise fail(f"{at} has {key} {value!r}", "true or false")
    return value


def span_of(at: str, record: Record, first: str, last: str, count: int, fail: Fail) -> tuple[int, int]:
    """A span of words, `first` to `last` (exclusive), that is not empty and lies among `count` words."""
    start, end = number_of(at, record, first, fail), number_of(at, record, last, fail)
    if start is None or end is None or not 0 <= start < end <= count:
        raise fail(f"{at} has {first} {start} and {last} {end}", f"word indexes, end exclusive, within 0 to {count}")
    return start, end
