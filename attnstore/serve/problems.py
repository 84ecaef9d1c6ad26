"""This file turns errors into problem details (RFC 9457): a kind, a status, what was met and what to do; no paths."""

import re
from collections.abc import Iterable
from typing import Any

import duckdb

from attnstore.errors import (
    AttnStoreError,
    BadInput,
    BadQuestion,
    Damaged,
    MissingExtra,
    NotAStore,
    NotFound,
    NotStored,
    UnsupportedFormat,
)
from attnstore.serve.gate import Refused

KINDS: dict[str, tuple[int, str]] = {
    "refused": (403, "The statement asks for what this service does not do for strangers"),
    "bad-sql": (400, "The statement cannot be run"),
    "bad-parameter": (400, "A parameter cannot be used"),
    "not-found": (404, "There is no such thing here"),
    "not-stored": (422, "The store does not keep what the answer needs"),
    "timeout": (422, "The request took longer than one may take"),
    "memory": (422, "The request needs more memory than one may take"),
    "too-large": (413, "The request or a part of its answer is too large"),
    "busy": (503, "All workers are taken; come again"),
    "not-acceptable": (406, "The answer does not come in that form"),
    "unauthorised": (401, "A token is needed"),
    "wrong-host": (421, "This service does not go by that name"),
    "cross-origin": (403, "Pages of other sites may not ask"),
    "bad-range": (416, "The file has no such bytes"),
    "not-allowed": (405, "That is not done here"),
    "damaged": (500, "The store is damaged"),
    "not-installed": (501, "The service lacks a package for this"),
    "internal": (500, "The service failed"),
}
"""Every kind of problem with its HTTP status and title."""

_TYPES: tuple[tuple[type[BaseException], str], ...] = (
    (Refused, "refused"),
    (NotFound, "not-found"),
    (BadInput, "bad-parameter"),
    (NotStored, "not-stored"),
    (BadQuestion, "bad-sql"),
    (Damaged, "damaged"),
    (UnsupportedFormat, "damaged"),
    (NotAStore, "damaged"),
    (MissingExtra, "not-installed"),
    (MemoryError, "memory"),
)

_PATH = re.compile(r"(?<![\w/.:])(?:[A-Za-z]:\\|~?/)[^\s'\"(){}\[\],;]*[^\s'\"(){}\[\],;.:]")
_TRACEBACK = re.compile(r"Traceback \(most recent call last\).*", re.DOTALL)
_MOST = 2_000


class Problem(Exception):
    """What went wrong with a request, as it is told to who asked. `retry_after` is in seconds."""

    def __init__(
        self, kind: str, found: str = "", expected: str = "", remedy: str = "", retry_after: int | None = None
    ) -> None:
        super().__init__(kind, found, expected, remedy, retry_after)
        self.kind, self.found, self.expected, self.remedy = kind, found, expected, remedy
        self.retry_after = retry_after

    @property
    def status(self) -> int:
        """The HTTP status."""
        return KINDS[self.kind][0]

    def body(self) -> dict[str, Any]:
        """The members of `application/problem+json`."""
        parts = [self.found, f"expected {self.expected}" if self.expected else "", self.remedy]
        detail = "; ".join(part for part in parts[:2] if part) + (f". {self.remedy}" if self.remedy else "")
        said = {"found": self.found, "expected": self.expected, "remedy": self.remedy}
        return {
            "type": f"/problems/{self.kind}",
            "title": KINDS[self.kind][1],
            "status": self.status,
            "detail": detail,
            **{name: text for name, text in said.items() if text},
        }

    def to_wire(self) -> dict[str, Any]:
        """The same for a message between processes."""
        return {"kind": self.kind, "found": self.found, "expected": self.expected, "remedy": self.remedy}


def problem(error: BaseException, places: Iterable[tuple[str, str]] = ()) -> Problem:
    """The problem that an error is; `places` are folders and the names that they go by outside."""
    if isinstance(error, Problem):
        return error
    cause = error.__cause__ or error
    if isinstance(cause, duckdb.InterruptException):
        return Problem("timeout", "the statement ran into the time limit", "", "Ask for less, or of fewer examples")
    if isinstance(cause, duckdb.OutOfMemoryException):
        return Problem("memory", "the statement ran into the memory limit", "", "Ask for less, or of fewer examples")
    kind = next((name for group, name in _TYPES if isinstance(error, group)), "internal")
    if kind == "internal" or not isinstance(error, AttnStoreError):
        return Problem(kind)  # what a failure of ours says is for the log
    doing, found, expected, remedy = (
        _clean(text, places) for text in (error.doing, error.found, error.expected, error.remedy)
    )
    return Problem(kind, f"{doing}: {found}", expected, remedy)


def _clean(text: str, places: Iterable[tuple[str, str]]) -> str:
    for folder, name in places:
        text = text.replace(folder, name)
    text = _TRACEBACK.sub("a file could not be used", text)
    return _PATH.sub("…", text)[:_MOST]
