"""This file finds the questions that paint layers x heads, and paints one for a store."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.concurrency import run_in_threadpool

from attnstore.catalogue.catalogue import questions
from attnstore.catalogue.declared import REQUIRED
from attnstore.catalogue.paint import Picture
from attnstore.catalogue.question import Question
from attnstore.errors import AttnStoreError
from attnstore.serve.pages.asked import Asked, absent_of_questions, ask
from attnstore.serve.pages.dependencies import DIRECTIONS, plain
from attnstore.serve.pages.grid import MOST_CELLS, Address, Grid, paint
from attnstore.serve.pages.render import link
from attnstore.serve.problems import Problem, problem
from attnstore.serve.published import Published
from attnstore.serve.service import Service
from attnstore.store.figures.figure import panels
from attnstore.store.figures.panels import Heat
from attnstore.store.result import Result

FIRST = "heads/entropy"
"""What a grid shows where nothing else was chosen."""


@dataclass(frozen=True, slots=True)
class Painted:
    """The grids of an answer, or the problem in their place; `help` says what the question asks."""

    name: str
    question: Question
    grids: Sequence[Grid] = ()
    problem: dict[str, Any] | None = None
    params: dict[str, object] = field(default_factory=dict)

    @property
    def help(self) -> str:
        """The question in one line."""
        return self.question.help.splitlines()[0]


def grid_questions() -> dict[str, tuple[Question, Picture]]:
    """Every grid that a question paints without being told more: `heads/entropy`, `weights/heads:grid-2`."""
    found: dict[str, tuple[Question, Picture]] = {}
    for name, question in questions().items():
        if question.compares or any(param.default is REQUIRED for param in question.params.values()):
            continue
        grids = [picture for picture in question.pictures if picture.kind == "grid"]
        for picture in grids:
            found[name if picture is grids[0] else f"{name}:{picture.name}"] = question, picture
    return found


async def choices(service: Service, store: Published) -> list[tuple[str, bool, list[tuple[str, str]]]]:
    """What a grid may show: title of the group, whether the store can answer, and options. What it cannot is last."""
    lacking = await absent_of_questions(service, store)
    groups: dict[str, list[tuple[str, str]]] = {}
    absent: list[tuple[str, str]] = []
    for name, (question, picture) in grid_questions().items():
        n_grids = sum(one.kind == "grid" for one in question.pictures)
        words = f"{question.name}: {picture.columns['value'].replace('_', ' ')}" if n_grids > 1 else question.name
        group = groups.setdefault(question.name.partition("/")[0], [])
        (absent if lacking[question.name] else group).append((name, words))
    found = [(group, True, options) for group, options in groups.items() if options]
    return found + ([("not in this store", False, absent)] if absent else [])


async def painted(service: Service, store: Published, name: str | None, kind: str | None) -> Painted:
    """The grids that a question paints. Problem `not-found` for one that paints none."""
    chosen = name or FIRST
    known = grid_questions()
    if chosen not in known:
        raise Problem("not-found", f"no grid {chosen!r}", f"one of {', '.join(known)}")
    question, picture = known[chosen]
    params: dict[str, object] = {"kind": kind} if kind and "kind" in question.params else {}
    answer = await ask(service, [store], question.name, params)
    if answer.result is None:
        return Painted(chosen, question, problem=answer.problem, params=params)
    return await run_in_threadpool(_paint, store, chosen, question, picture, answer, params)


def _paint(
    store: Published, name: str, question: Question, picture: Picture, answer: Asked, params: dict[str, object]
) -> Painted:
    assert answer.result is not None
    kind = params.get("kind")

    def address(layer: int, head: int) -> str:
        return link("/stores", store.name, "heads", layer, head, kind=kind)

    try:
        grids = grids_of(answer.result, picture, address)
    except AttnStoreError as error:
        return Painted(name, question, problem=problem(error).body(), params=params)
    return Painted(name, question, grids, params=params)


def grids_of(result: Result, picture: Picture, address: Address, best: tuple[int, int] | None = None) -> list[Grid]:
    """Every panel of a grid, painted with links to what `address` names. Errors as `panels`."""
    found = [panel for panel in panels(result, picture) if isinstance(panel, Heat)]
    found = [panel for panel in found if panel.values.size and panel.values.size <= MOST_CELLS]
    value = picture.columns["value"].replace("_", " ")
    is_syntax = result.question is not None and result.question.name.startswith("relations/")
    titles = [_plain_title(panel.title.partition(": ")[2], is_syntax) for panel in found]
    # Where parts have names, a column called value says nothing.
    named = [title if value in (title, "value") else f"{value}, {title}" for title in titles]
    is_small = len(found) > 1
    return [paint(panel, title, address, best, small=is_small) for panel, title in zip(found, named, strict=True)]


def _plain_title(title: str, is_syntax: bool) -> str:
    """The title of a panel in words: directions and, in questions about syntax, relations are said plainly."""
    parts = [DIRECTIONS.get(part) or (plain(part) if is_syntax else part) for part in title.split(", ")]
    return ", ".join(part.replace("_", " ") for part in parts)
