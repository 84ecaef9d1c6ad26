"""This file draws one attention map of a store in the form that is asked for."""

from attnstore.show.heatmap import map_svg
from attnstore.show.lines import lines_svg
from attnstore.show.page import page
from attnstore.show.terminal import map_text
from attnstore.store.attention_map import AttentionMap

FORMS = ("terminal", "svg", "lines", "html")


def draw(found: AttentionMap, form: str = "terminal", *, colour: bool = False) -> str:
    """A map of one head as text, as an SVG heat map, as lines between tokens, or as a page with both."""
    weights, queries, keys = found.to_numpy(), found.queries, found.keys
    title = f"example {found.example}, {found.kind} layer {found.layers[0]} head {found.heads[0]}, {found.level}s"
    if form == "svg":
        return map_svg(weights, queries, keys, title=title)
    if form == "lines":
        return lines_svg(weights, queries, keys)
    if form == "html":
        return page(title, [map_svg(weights, queries, keys, title=title), lines_svg(weights, queries, keys)])
    return f"{title}\n{map_text(weights, queries, keys, colour=colour)}"
