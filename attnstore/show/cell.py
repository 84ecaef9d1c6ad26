"""This file writes one value as plain text that is safe to print and whose width on a terminal is known."""

import decimal
import math
import unicodedata
from collections.abc import Mapping

NULL = "-"
# Joiners belong to the spelling of Persian and of some emoji; the other format characters can forge a line.
HARMLESS = "\u200c\u200d"
FORBIDDEN = ("Cc", "Cf", "Cn", "Cs", "Zl", "Zp")
SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def visible(text: str) -> str:
    """The text with control, format and unassigned characters written as escapes such as \\x1b or \\u202e.

    Tokens come from foreign texts: an escape sequence would steer the reader's terminal, a direction mark would
    make a line read otherwise than it is, and XML forbids most of them.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escape(letter) if _is_forbidden(letter) else letter for letter in text)


def width(text: str) -> int:
    """The columns that a text takes on a terminal: two for wide characters, none for combining ones."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def clip(text: str, columns: int) -> str:
    """The text, cut and closed by "…" where it takes more than so many columns."""
    if width(text) <= columns:
        return text
    kept, used = "", 0
    for letter in text:
        used += _columns(letter)
        if used > columns - 1:
            break
        kept += letter
    return kept + "…"


def pad(text: str, columns: int, *, right: bool = False) -> str:
    """The text filled with spaces to so many columns; `right` puts it at the right edge."""
    space = " " * max(columns - width(text), 0)
    return space + text if right else text + space


def number(value: float) -> str:
    """Three decimals; four significant digits for what three decimals would hide or blow up."""
    if not math.isfinite(value):
        return str(value)
    if value and not 0.001 <= abs(value) < 1e9:
        return f"{value:.4g}"
    return f"{value:.3f}"


def written(value: object) -> str:
    """Any value of an answer as one line of text: "-" for null, lists in brackets, bytes in hexadecimal."""
    if value is None:
        return NULL
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return number(value)
    if isinstance(value, decimal.Decimal):
        # DuckDB gives sums of integers as decimals without a fraction.
        return str(value) if value.as_tuple().exponent == 0 else number(float(value))
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{written(key)}: {written(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(written, value)) + "]"
    return visible(str(value))


def _is_forbidden(letter: str) -> bool:
    return unicodedata.category(letter) in FORBIDDEN and letter not in HARMLESS


def _escape(letter: str) -> str:
    code = ord(letter)
    if letter in SHORT:
        return SHORT[letter]
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _columns(letter: str) -> int:
    if unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in ("W", "F") else 1
