"""This file parses the JSON of a store, and refuses what other readers of it could take for something else."""

import json
import math
import re
from collections.abc import Collection, Mapping
from typing import Any

from attnstore.errors import Damaged

_HEX = re.compile(r"[0-9a-f]*")
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")

MOST = 2**53
"""No number in a store is larger: a reader that knows only doubles would take another."""


def parsed(text: bytes, doing: str) -> Any:
    """The value of a text in UTF-8. Damaged for keys that come twice, NaN, infinite numbers, lone surrogates, depth."""
    try:
        value = json.loads(
            text.decode(), object_pairs_hook=_once, parse_float=_finite, parse_constant=_finite, parse_int=_integer
        )
        if _SURROGATE.search(text):  # half of a letter, which can be neither printed nor stored
            json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError, MemoryError) as error:
        found = "nested too deep" if isinstance(error, RecursionError) else str(error)[:200]
        raise Damaged(doing, f"no valid JSON ({found})", remedy="Fetch the store again") from error
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in found if names.count(name) > 1)
        raise ValueError(f"the key {twice[:80]!r} comes twice")
    return found


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"the number {text[:40]}")
    return number


def _integer(text: str) -> int:
    if len(text) > 20:
        raise ValueError(f"the number {text[:40]}…")
    return int(text)


def count(value: object, most: int = MOST, least: int = 0) -> int:
    """The value, if it is a whole number from `least` to `most`; ValueError otherwise, also for true and 3.0."""
    if type(value) is not int or not least <= value <= most:
        raise ValueError(f"{str(value)[:40]!r}, not a number from {least} to {most}")
    return value


def mapping(value: object) -> dict[str, Any]:
    """The value, if it is an object; ValueError otherwise."""
    if not isinstance(value, Mapping):
        raise ValueError(f"{str(value)[:40]!r}, not an object")
    return dict(value)


def text(value: object) -> str:
    """The value, if it is a string; ValueError otherwise."""
    if not isinstance(value, str):
        raise ValueError(f"{str(value)[:40]!r}, not a text")
    return value


def texts(value: object) -> list[str]:
    """The value, if it is a list of strings; ValueError otherwise."""
    if not isinstance(value, list):
        raise ValueError(f"{str(value)[:40]!r}, not a list")
    return [text(item) for item in value]


def checked_sha256(value: object) -> str:
    """The value, if it is the text of a sha256: 64 lower-case hexadecimal digits. ValueError otherwise."""
    return hexadecimal(value, 64)


def hexadecimal(value: object, digits: int) -> str:
    """The value, if it is a text of so many lower-case hexadecimal digits; ValueError otherwise."""
    if not isinstance(value, str) or len(value) != digits or not _HEX.fullmatch(value):
        raise ValueError(f"{str(value)[:80]!r}, not {digits} lower-case hexadecimal digits")
    return value


def one_of(allowed: Collection[str], value: str) -> str:
    """The value, if it is among the allowed ones; ValueError otherwise."""
    if value not in allowed:
        raise ValueError(f"{str(value)[:80]!r}, not one of {', '.join(allowed)}")
    return value


class reading:  # noqa: N801 - reads as a statement
    """Turns what a malformed value raises into Damaged, with the file that it came from."""

    def __init__(self, path: object) -> None:
        self.path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        doing, remedy = f"reading {self.path}", "Fetch the store again"
        if isinstance(error, KeyError):
            raise Damaged(doing, f"no {error} in it", remedy=remedy) from error
        if isinstance(error, TypeError | ValueError | OverflowError | AttributeError) and not isinstance(
            error, Damaged
        ):
            raise Damaged(doing, str(error), remedy=remedy) from error
