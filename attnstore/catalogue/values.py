"""This file turns what a caller writes for a parameter into a value of the parameter's type."""

import math
import operator
from typing import Literal, SupportsIndex

Type = Literal["integer", "real", "text", "boolean", "any"]
DECLARABLE: dict[str, Type] = {"integer": "integer", "real": "real", "text": "text", "boolean": "boolean"}
NULLS = ("null", "none")
BOOLEANS = {"true": True, "false": False}


def convert(value: object, kind: Type) -> object:
    """The value as int, float, str or bool, from a string or from a number of Python or NumPy.

    The type "any" belongs to a parameter that nobody declared: a string becomes an integer, a real number,
    a boolean or null where it reads as one, else it stays text. Raises ValueError with what was expected.
    """
    if kind == "integer":
        return _integer(value)
    if kind == "real":
        return _real(value)
    if kind == "boolean":
        return _boolean(value)
    if kind == "text":
        if isinstance(value, str):
            return value
        raise ValueError("text")
    return _guess(value) if isinstance(value, str) else value


def is_null(value: object) -> bool:
    """Whether the value is None or a word for it; only a parameter whose default is null reads it so."""
    return value is None or (isinstance(value, str) and value.strip().lower() in NULLS)


def written(value: object) -> str:
    """The value as one writes it on the command line or in a header."""
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _integer(value: object) -> int:
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            raise ValueError("an integer") from None
    # Whole reals pass, since JSON and spreadsheets write 50 as 50.0.
    if isinstance(value, float) and value.is_integer():
        return int(value)
    try:
        if isinstance(value, SupportsIndex) and not isinstance(value, bool):
            return operator.index(value)
    except TypeError:  # NumPy's booleans and arrays have the method and refuse in it
        pass
    raise ValueError("an integer")


def _real(value: object) -> float:
    try:
        if isinstance(value, bool):
            raise ValueError
        number = float(value)  # type: ignore[arg-type]  # whatever float() refuses is an error of the caller
    except (TypeError, ValueError, OverflowError):
        raise ValueError("a number") from None
    if not math.isfinite(number):
        raise ValueError("a finite number")
    return number


def _boolean(value: object) -> bool:
    if isinstance(value, str) and value.strip().lower() in BOOLEANS:
        return BOOLEANS[value.strip().lower()]
    if isinstance(value, bool) or type(value).__name__ == "bool":  # NumPy's own bool is no subclass
        return bool(value)
    raise ValueError("true or false")


def _guess(text: str) -> object:
    if is_null(text):
        return None
    kinds: tuple[Type, ...] = ("integer", "real", "boolean")
    for kind in kinds:
        try:
            return convert(text, kind)
        except ValueError:
            continue
    return text
