"""This file makes texts of a store safe to stand in a README: in its YAML and in its Markdown."""

import re
import unicodedata

LONGEST = 300
"""Letters of one text that a card shows."""

_MARKDOWN = re.compile(r"([\\`*_\[\]<>|~&#$@{}]|(?<=www)\.|:(?=//)|!(?=\[))")
_INVISIBLE = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
"""Unicode's categories of what is not seen: controls, marks that turn the direction of reading, halves of letters."""


def one_line(value: object) -> str:
    """The text on one line, without what cannot be seen, and cut where it is long."""
    seen = "".join(" " if unicodedata.category(letter) in _INVISIBLE else letter for letter in str(value))
    text = " ".join(seen.split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def markdown(value: object) -> str:
    """The text so that Markdown shows it as it is: no mark-up, HTML, link or table column comes of it.

    It may stand anywhere but at the beginning of a line.
    """
    return _MARKDOWN.sub(r"\\\1", one_line(value))


def yaml(value: object) -> str:
    """The text as a quoted string of YAML, whatever it looks like."""
    return '"' + one_line(value).replace("\\", "\\\\").replace('"', '\\"') + '"'
