"""This file reads the pages of the documentation for the tests of what they say."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "ingest/README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def blocks(path: Path, *languages: str) -> list[str]:
    """The fenced blocks of a page in these languages."""
    return [code for language, code in FENCE.findall(text_of(path)) if language in languages]
