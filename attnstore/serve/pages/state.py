"""This file keeps a page's state in its address, and shows what went wrong beside the form that asked for it."""

from collections.abc import Awaitable, Mapping
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from attnstore.serve.problems import Problem

Found = TypeVar("Found")


def address(path: str, state: Mapping[str, object], **changes: object) -> str:
    """The path with the state behind it, changed in places. What is None or empty is left out, as are defaults
    that the caller took out of `state`; true and false are written as in JSON."""
    said = {name: value for name, value in {**state, **changes}.items() if value is not None and value != ""}
    plain = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in said.items()}
    return quote(path) + (f"?{urlencode(plain)}" if plain else "")


async def attempt(asked: Awaitable[Found]) -> tuple[Found | None, dict[str, Any] | None]:
    """The answer, or the problem as its members, for a page that goes on without the answer.

    A service that is busy or broken is no part of a page: such problems are raised.
    """
    try:
        return await asked, None
    except Problem as problem:
        if problem.status >= 500 and problem.kind != "not-installed":
            raise
        return None, problem.body()
