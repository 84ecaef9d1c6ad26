"""This file turns an answer into what is to be drawn, by the picture that its question or the caller names."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from attnstore.catalogue.declared import REQUIRED
from attnstore.catalogue.paint import Picture, choose
from attnstore.errors import BadInput
from attnstore.store.figures.bars import bars, stack
from attnstore.store.figures.chart import layers, profile, scatter
from attnstore.store.figures.evidence import evidence
from attnstore.store.figures.heat import grid, matrix
from attnstore.store.figures.panels import Panel
from attnstore.store.figures.rows import Rows

if TYPE_CHECKING:
    from attnstore.store.result import Result

MAKERS: Mapping[str, Callable[[Rows, str], Sequence[Panel]]] = {
    "grid": grid,
    "layers": layers,
    "scatter": scatter,
    "bars": bars,
    "stack": stack,
    "matrix": matrix,
    "profile": profile,
    "evidence": evidence,
}


def picture_of(result: "Result", wanted: str | None = None) -> Picture:
    """The picture of that name or description; None is the first that the question paints.

    BadInput where it paints none, NotFound for another name, BadQuestion for a description that cannot be read.
    """
    pictures = result.question.pictures if result.question else ()
    if wanted is not None:
        return choose(pictures, wanted, result.columns)
    if not pictures:
        raise BadInput(
            f"drawing {result.provenance.question or 'an answer'}",
            "nothing to paint",
            "a question with `paint:`, or the description of a picture",
            "Say what to draw, such as bars(accuracy, by=relation)",
        )
    return pictures[0]


def panels(result: "Result", wanted: str | Picture | None = None) -> Sequence[Panel]:
    """What is to be drawn: one panel or several of one kind. Errors as `picture_of`, and of columns that do not fit."""
    picture = wanted if isinstance(wanted, Picture) else picture_of(result, wanted)
    name = result.provenance.question or "answer"
    # What a caller had to choose belongs to the title; the rest is in the citation.
    required = (
        [param.name for param in result.question.params.values() if param.default is REQUIRED]
        if result.question
        else []
    )
    chosen = "".join(f" {key}={result.provenance.params[key]}" for key in required if key in result.provenance.params)
    return MAKERS[picture.kind](Rows(result.to_arrow(), picture, f"drawing {name}"), name + chosen)
