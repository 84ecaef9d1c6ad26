"""This file draws one attention map as lines from word to word."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from attnstore.errors import BadInput
from attnstore.show.cell import clip, number, visible
from attnstore.show.colour import matrix
from attnstore.show.markup import Markup
from attnstore.show.svg import Drawing, hover, longest, svg, text

LABEL_COLUMNS = 24
MOST_LINES_TOKENS = 256
FAINT = 0.005


def lines_svg(weights: ArrayLike, queries: Sequence[str], keys: Sequence[str]) -> Markup:
    """One map [query, key] as lines from the queries (left) to the keys (right), as opaque as the weight (0-1).

    Weights below 0.005 and NaN are not drawn. The drawing is that of Clark et al. 2019, figure 1. Raises
    BadInput when the shape is not that of the labels, or for more than 256 tokens a side.
    """
    doing = "drawing lines between tokens"
    array = matrix(weights, doing, (len(queries), len(keys)))
    if max(array.shape) > MOST_LINES_TOKENS:
        raise BadInput(
            doing,
            f"{max(array.shape)} tokens on a side",
            f"at most {MOST_LINES_TOKENS}",
            "Draw it as a heat map, or choose a part of it",
        )
    names = [[clip(visible(token), LABEL_COLUMNS) for token in side] for side in (queries, keys)]
    step, top = 18, 30
    left = longest(names[0]) + 8
    right = left + 170
    parts = [text(left, 14, "query", "attn-t", "end"), text(right, 14, "key", "attn-t")]
    for x, side, anchor in ((left, names[0], "end"), (right, names[1], "start")):
        parts += [text(x, top + step * index + 4, name, "attn-k", anchor) for index, name in enumerate(side)]
    for row, column in np.argwhere(array >= FAINT).tolist():
        weight = float(array[row, column])
        said = hover(f"{queries[row]} → {keys[column]}: {number(weight)}")
        parts.append(
            f'<path class="attn-l" d="M{left + 6:g} {top + step * row}L{right - 6:g} {top + step * column}" '
            f'stroke-width="2" stroke-opacity="{min(weight, 1.0):.3f}">{said}</path>'
        )
    height = top + step * max(*array.shape, 1)
    label = f"Attention from {len(queries)} queries to {len(keys)} keys"
    return svg(Drawing(right + longest(names[1]) + 8, height, label, parts))
