"""This file is the page of clusters: heads as points in the plane, near one another where they attend alike."""

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from attnstore.serve.api import service_of
from attnstore.serve.pages.asked import ask, kind_of, those_soon
from attnstore.serve.pages.render import drawn, link, render
from attnstore.serve.pages.state import address
from attnstore.serve.published import Published
from attnstore.show.colour import series
from attnstore.show.markup import Markup, escape

router = APIRouter()

QUESTION = "clusters/coordinates"
WIDE, HIGH, MARGIN = 900, 560, 46
MOST_NAMES = 160
"""Points above which none has its name beside it."""

SHAPES = ("circle", "square", "triangle", "diamond")
"""Layers take turns, so that neighbours differ in more than colour."""


@router.get("/stores/{store}/clusters")
async def clusters(
    request: Request,
    store: str,
    kind: str | None = None,
    sampled: Annotated[str, Query(max_length=9, pattern=r"^\d*$")] = "",
    seed: Annotated[str, Query(max_length=9, pattern=r"^\d*$")] = "",
    root: bool = False,
) -> Response:
    """The scatter of clusters/coordinates, its form and its table. What takes long is looked at again."""
    service = service_of(request)
    own = service.store(store)
    chosen = kind_of(own, kind)
    given: dict[str, Any] = {
        "kind": chosen,
        "sampled": int(sampled) if sampled else None,
        "seed": int(seed) if seed else None,
        "root": root or None,
    }
    given = {name: value for name, value in given.items() if value is not None}
    found = (await those_soon({QUESTION: ask(service, [own], QUESTION, given)}))[QUESTION]
    path = f"/stores/{own.name}/clusters"
    rows = found.rows if found is not None else []
    layers = sorted({int(row["layer"]) for row in rows})
    return render(
        request,
        "clusters.html",
        found.status if found is not None else 200,
        store=own,
        path=path,
        again=address(path, given) if found is None else None,
        given=given,
        kinds=own.store.kinds,
        problem=found.problem if found is not None else None,
        rows=rows,
        stress=rows[0]["stress"] if rows else None,
        picture=drawn(plane(rows, own, chosen)) if rows else None,
        legend=[(layer, drawn(_sample(layer, len(layers)))) for layer in layers],
        question=link("/stores", own.name, "questions", QUESTION, **given),
        downloads=[(form, link("/v1/questions", QUESTION, store=own.name, **given, format=form)) for form in FORMS],
    )


FORMS = ("csv", "json", "arrow")


@dataclass(frozen=True, slots=True)
class Scaled:
    """From coordinates to pixels, with one unit on both axes, since only distances mean something."""

    left: float
    top: float
    unit: float

    def at(self, x: float, y: float) -> tuple[float, float]:
        """The place of a point in pixels."""
        return MARGIN + (x - self.left) * self.unit, MARGIN + (self.top - y) * self.unit


def plane(rows: list[dict[str, Any]], store: Published, kind: str | None) -> Markup:
    """The heads as points that are links; those with a finite place."""
    known = [row for row in rows if row["x"] is not None and row["y"] is not None]
    xs, ys = [row["x"] for row in known] or [0.0], [row["y"] for row in known] or [0.0]
    span = max((max(xs) - min(xs)) / (WIDE - 2 * MARGIN), (max(ys) - min(ys)) / (HIGH - 2 * MARGIN), 1e-12)
    scaled = Scaled(min(xs), max(ys), 1 / span)
    high = 2 * MARGIN + (max(ys) - min(ys)) / span
    layers = sorted({int(row["layer"]) for row in known})
    parts = [f'<rect class="paper" x="0.5" y="0.5" width="{WIDE - 1}" height="{high - 1:.0f}" rx="8"/>']
    points = [scaled.at(row["x"], row["y"]) for row in known]
    named: list[tuple[float, float]] = []
    for row, (x, y) in zip(known, points, strict=True):
        layer, head = int(row["layer"]), int(row["head"])
        said = escape(f"layer {layer}, head {head}: {row['label']}")
        name = ""
        # A name is left out where it would lie upon another, or upon a point.
        is_free = all(abs(x - a) > 46 or abs(y - b) > 12 for a, b in named)
        is_free = is_free and not any(0 < a - x < 52 and abs(y - b) < 11 for a, b in points)
        if len(known) <= MOST_NAMES and is_free:
            named.append((x, y))
            name = f'<text class="name" x="{x + 9:.1f}" y="{y + 4:.1f}">L{layer} H{head}</text>'
        parts.append(
            f'<a href="{escape(link("/stores", store.name, "heads", layer, head, kind=kind))}" aria-label="{said}">'
            f"<title>{said}</title>{_mark(layer, len(layers), x, y)}{name}</a>"
        )
    body = "\n".join(parts)
    return Markup(
        f'<svg class="plane" viewBox="0 0 {WIDE} {high:.0f}" role="group" data-grid '
        f'aria-label="{len(known)} heads as points; those that attend alike lie together">\n{body}\n</svg>'
    )


def _mark(layer: int, n_layers: int, x: float, y: float) -> str:
    """The mark of a layer: a colour along the scale, and a shape that its neighbours do not have."""
    fill = f'class="point" fill="{series(layer, n_layers, is_ordered=True)}"'
    shape = SHAPES[layer % len(SHAPES)]
    if shape == "circle":
        return f'<circle {fill} cx="{x:.1f}" cy="{y:.1f}" r="6.5"/>'
    if shape == "square":
        return f'<rect {fill} x="{x - 5.5:.1f}" y="{y - 5.5:.1f}" width="11" height="11"/>'
    if shape == "triangle":
        return f'<path {fill} d="M{x:.1f} {y - 7.5:.1f}l7 12.5h-14z"/>'
    return f'<path {fill} d="M{x:.1f} {y - 8:.1f}l8 8l-8 8l-8 -8z"/>'


def _sample(layer: int, n_layers: int) -> Markup:
    return Markup(
        f'<svg class="plane-key" viewBox="0 0 20 20" aria-hidden="true">{_mark(layer, n_layers, 10, 10)}</svg>'
    )
