"""This file is the page of one head: its numbers among those of all heads, its relations and sentences."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import markupsafe
from fastapi import APIRouter, Request
from fastapi.responses import Response

from attnstore.catalogue.catalogue import questions
from attnstore.serve.api import service_of
from attnstore.serve.pages.asked import Asked, ask, kind_of, kind_params, those_soon
from attnstore.serve.pages.evidence import sentences
from attnstore.serve.pages.relation_rows import RARE, Row, rows_of
from attnstore.serve.pages.render import drawn, link, render
from attnstore.serve.problems import Problem
from attnstore.serve.published import Published
from attnstore.serve.service import Service, table_of
from attnstore.show.markup import Markup

router = APIRouter()

NUMBERS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "heads/entropy": (
        ("entropy_nats", "entropy, nats"),
        ("entropy_normalised", "entropy, share of the most there can be"),
    ),
    "heads/distance": (("distance_tokens", "distance looked, tokens"),),
    "heads/positions": (("value", "weight on {metric}"),),
    "heads/special": (("value", "weight {metric}"),),
    "heads/confidence": (("value", "largest weight of a row, {variant}"),),
    "heads/cls_entropy": (("entropy_nats", "entropy of the row of [CLS], nats"),),
    "heads/sinks": (("weight", "weight on a sink, {sink}"),),
}
"""The columns that make the numbers of a head, by question; names in braces are columns that set rows apart."""

WORDS = {
    "self": "the token itself",
    "previous": "the token before",
    "next": "the token after",
    "first": "the first token",
    "cls": "on [CLS]",
    "sep": "on [SEP]",
    "punct": "on . and ,",
    "sep_sep": "from [SEP] to [SEP]",
    "rest_sep": "from all else to [SEP]",
    "with_sep": "all keys",
    "drop_keys": "without [SEP]",
    "drop_keys_and_queries": "without [SEP] on either side",
    "drop_keys_renormalised": "without [SEP], renormalised",
}
LISTED = 12
"""Relations that are listed of a head."""


@dataclass(frozen=True, slots=True)
class Number:
    """One number of a head; `rank` 1 is the largest of `of` heads, and `strip` shows it among them."""

    name: str
    value: float
    rank: int
    of: int
    strip: markupsafe.Markup


@router.get("/stores/{store}/heads/{layer}/{head}")
async def head_page(request: Request, store: str, layer: int, head: int, kind: str | None = None) -> Response:
    """The head's numbers with their ranks, the relations that it knows, and sentences to look at."""
    service = service_of(request)
    found = service.store(store)
    kind = kind_of(found, kind)
    shape = found.store.info.kinds[kind or found.store.kinds[0]]
    if not (0 <= layer < shape.layers and 0 <= head < shape.heads):
        sizes = f"layers 0 to {shape.layers - 1}, heads 0 to {shape.heads - 1}"
        raise Problem("not-found", f"layer {layer}, head {head}", sizes)
    params = kind_params(kind)
    answers = await those_soon(
        {
            "best": ask(service, [found], "relations/best", params),
            "accuracy": ask(service, [found], "relations/accuracy", {"layer": layer, "head": head, **params}),
            **{name: ask(service, [found], name, params) for name in NUMBERS},
        }
    )
    groups = [
        (name, questions()[name].help.splitlines()[0], _numbers(name, answers[name], layer, head)) for name in NUMBERS
    ]
    known, lacking = _relations(answers["best"], answers["accuracy"])
    clearest = _clearest(known)
    are_late = answers["best"] is None or answers["accuracy"] is None
    is_late = are_late or any(answers[name] is None for name in NUMBERS)
    return render(
        request,
        "head.html",
        store=found,
        kind=kind,
        kinds=found.store.kinds,
        layer=layer,
        head=head,
        shape=shape,
        groups=[(name, words, numbers) for name, words, numbers in groups if numbers],
        late=[name for name in NUMBERS if answers[name] is None],
        absent=[name for name in NUMBERS if (one := answers[name]) is not None and one.problem],
        again=link("/stores", found.name, "heads", layer, head, **params) if is_late else None,
        relations=known,
        are_late=are_late,
        is_counted=bool(answers["accuracy"] and answers["accuracy"].rows),
        clearest=clearest,
        marks=[row for row in rows_of(answers["best"].rows) if (row.layer, row.head) == (layer, head)]
        if answers["best"]
        else [],
        problem=lacking,
        evidence=await _evidence(service, found, clearest, params) if clearest else [],
        examples=[] if known else await _examples(service, found),
    )


def _numbers(question: str, answer: Asked | None, layer: int, head: int) -> list[Number]:
    """The numbers that a question gives of one head, each with its rank and place among all heads."""
    rows = answer.rows if answer else []
    numbers = []
    for column, name in NUMBERS[question]:
        groups: dict[str, list[dict[str, Any]]] = {}
        for row in rows:
            said = {key: WORDS.get(str(value), str(value)) for key, value in row.items() if isinstance(value, str)}
            groups.setdefault(name.format_map(said), []).append(row)
        for words, group in groups.items():
            own = next((row[column] for row in group if (row["layer"], row["head"]) == (layer, head)), None)
            values = [row[column] for row in group if row[column] is not None]
            if own is not None:
                rank = 1 + sum(value > own for value in values)
                numbers.append(Number(words, own, rank, len(values), _strip(values, own)))
    return numbers


def _strip(values: Sequence[float], own: float) -> markupsafe.Markup:
    """Where a value lies among those of all heads: a line for each, a point for this one."""
    low, high = min(values), max(values)

    def x(value: float) -> float:
        return 4 + 192 * ((value - low) / (high - low) if high > low else 0.5)

    lines = "".join(f'<line x1="{x(value):.1f}" x2="{x(value):.1f}" y1="6" y2="16"/>' for value in values)
    return drawn(
        Markup(
            '<svg class="strip" viewBox="0 0 200 22" width="200" height="22" aria-hidden="true">'
            f'<line class="base" x1="4" x2="196" y1="11" y2="11"/>{lines}'
            f'<circle cx="{x(own):.1f}" cy="11" r="5"/></svg>'
        )
    )


def _relations(best: Asked | None, accuracy: Asked | None) -> tuple[list[Row], dict[str, Any] | None]:
    """What the head knows better than a fixed offset, in the better direction, the surest gains first."""
    if best is None or accuracy is None:
        return [], None
    if best.problem or accuracy.problem:
        return [], best.problem or accuracy.problem
    baselines = {row.relation: row for row in rows_of(best.rows)}
    found: dict[str, Row] = {}
    for row in accuracy.rows:
        base = baselines.get(row["relation"])
        if base is None or row["relation"] == "all" or row["direction"] not in ("dep_to_head", "head_to_dep"):
            continue
        one = Row(**{**row_of(row), "baseline": base.baseline, "offset": base.offset})
        if one.relation not in found or one.accuracy > found[one.relation].accuracy:
            found[one.relation] = one
    known = [one for one in found.values() if one.gain > 0]
    # Of a few words, a large gain says little.
    return sorted(known, key=lambda one: (-one.gain * min(one.n, RARE), one.relation))[:LISTED], None


def _clearest(known: Sequence[Row]) -> Row | None:
    """The relation that sentences show best: the one most often right, rare ones left out where others are not."""
    enough = min(RARE, max((one.n for one in known), default=0))
    return max((one for one in known if one.n >= enough), key=lambda one: one.accuracy, default=None)


def row_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """What relations/accuracy says that a line of the table has."""
    return {name: row[name] for name in ("relation", "n", "layer", "head", "direction", "accuracy", "derived")}


async def _evidence(
    service: Service, store: Published, row: Row, params: Mapping[str, object]
) -> list[tuple[bool, Any]]:
    """A few sentences of one relation of the head: right ones, and wrong ones."""
    place = {"relation": row.relation, "layer": row.layer, "head": row.head, "direction": row.direction, **params}
    found = []
    for correct, limit in ((True, 4), (False, 2)):
        asked = await ask(service, [store], "relations/evidence", {**place, "correct": correct, "limit": limit})
        found += [(correct, one) for one in sentences(asked.rows)]
    return found


async def _examples(service: Service, store: Published) -> list[dict[str, Any]]:
    """Some examples of middling length, where there are no relations to choose them by."""
    text = """select example, name, text from examples
        order by abs(n_tokens - 16), example limit 6"""
    found: list[dict[str, Any]] = table_of(await service.sql(store, text, {}, form="arrow")).to_pylist()
    return found
