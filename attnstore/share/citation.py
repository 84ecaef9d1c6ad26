"""This file writes what cites a store or an answer: a paragraph, an entry for BibTeX, or all of it as JSON."""

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attnstore.store.asking import provenance
from attnstore.store.result import cited_versions

if TYPE_CHECKING:
    from attnstore.store.store import Store

Citation = Mapping[str, Any]

_LATEX = {
    "\\": r"{\textbackslash}",
    "{": r"{\textbraceleft}",
    "}": r"{\textbraceright}",
    "^": r"{\textasciicircum}",
    "~": r"{\textasciitilde}",
    '"': r"{\textquotedbl}",
    **{mark: "\\" + mark for mark in "%$&#_"},
}
"""BibTeX counts every brace, escaped or not, so none stands alone."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]+")
"""Controls, ends of lines, and marks that turn the direction of reading: a line would not say what it seems to."""


def of_store(store: "Store") -> dict[str, Any]:
    """What identifies a store at its snapshot, as `Result.cite` does an answer."""
    facts = provenance(store, "", {}, None)
    names = ("store_id", "title", "snapshot", "content_hash", "model", "revision")
    return {name: getattr(facts, name) for name in names} | dict(facts.made) | {"versions": cited_versions()}


def json_text(citation: Citation) -> str:
    """The citation as JSON, keys sorted, one a line."""
    return json.dumps(dict(citation), indent=2, sort_keys=True, ensure_ascii=False, default=str) + "\n"


def paragraph(citation: Citation) -> str:
    """The citation as one line of text, ended by a newline."""
    model = _model(citation)
    examples = citation.get("corpus", {}).get("examples")
    sentences = [
        f"“{citation['title']}”: attention of {model}" + (f" over {examples} examples." if examples else "."),
        f"attnstore store {citation['store_id']}, snapshot {citation['snapshot']} of "
        f"{str(citation.get('created', ''))[:10]}, content sha256 {citation['content_hash']}.",
    ]
    if citation.get("licence"):
        sentences.append(f"Licence of the corpus: {citation['licence']}.")
    if other := citation.get("compared_with"):
        sentences.append(
            f"Compared with “{other['title']}” of {_model(other)}, store {other['store_id']}, snapshot "
            f"{other['snapshot']}, content sha256 {other['content_hash']}."
        )
    sentences += _asked(citation)
    versions = ", ".join(f"{name} {version}" for name, version in citation["versions"].items())
    return _CONTROL.sub(" ", " ".join([*sentences, f"Made with {versions}."])).strip() + "\n"


def bibtex(citation: Citation) -> str:
    """The citation as a @misc of BibTeX, in UTF-8; its key is of the content hash and, for an answer, of that."""
    answer = str(citation.get("answer_sha256", ""))[:8]
    key = "-".join(filter(None, ["attnstore", citation["content_hash"][:8], answer]))
    asked = " ".join(_asked(citation))
    note = [f"Content sha256 {citation['content_hash']}."]
    if citation.get("licence"):
        note.append(f"Licence of the corpus: {citation['licence']}.")
    if other := citation.get("compared_with"):
        note.append(f"Compared with {other['title']}, content sha256 {other['content_hash']}.")
    fields = {
        # Twice in braces, so that a style leaves capitals alone.
        "title": "{" + _latex(f"{citation['title']}: attention of {_model(citation)}") + "}",
        "howpublished": _latex(f"attnstore store {citation['store_id']}, snapshot {citation['snapshot']}"),
        "year": _latex(str(citation.get("created", ""))[:4]),
        "note": _latex(" ".join([*note, asked]).strip()),
    }
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
    return "\n".join([f"@misc{{{key},", *lines, "}"]) + "\n"


def _model(citation: Citation) -> str:
    name, revision = citation["model"] or "an unnamed model", citation.get("revision")
    return f"{name} (revision {revision})" if revision else str(name)


def _asked(citation: Citation) -> list[str]:
    """Sentences about the question and its answer; none where the store alone is cited."""
    if "answer_sha256" not in citation:
        return []
    params = ", ".join(f"{name}={value}" for name, value in citation["params"].items() if value is not None)
    what = f"Question {citation['question']}" if citation["question"] else f"SQL: {citation['sql']}"
    narrowed = f", where {citation['where']}" if citation.get("where") else ""
    found = [f"{what}{f' ({params})' if params else ''}{narrowed}."]
    if citation.get("source"):
        found.append(f"After {citation['source']}.")
    return [*found, f"Answer: {citation['rows']} rows, sha256 of its CSV {citation['answer_sha256']}."]


def _latex(text: str) -> str:
    return "".join(_LATEX.get(mark, mark) for mark in " ".join(_CONTROL.sub(" ", text).split()))
