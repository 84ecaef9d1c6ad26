"""This file says which arrays hold the maps of one kind: all weights, or the largest of each row."""

from collections.abc import Mapping

from attnstore.format.arrays import ArraySpec
from attnstore.format.manifest import Kept, Kind
from attnstore.format.quantise import PRECISIONS

NO_KEY = 2**32 - 1
"""The key in a place of a row that has fewer keys than are kept."""


def map_specs(name: str, kind: Kind, kept: Kept, precision: str, cells: int, rows: int) -> dict[str, ArraySpec]:
    """The arrays of a kind in a segment whose examples own `cells` cells and have `rows` queries; none for no maps."""
    if kept.maps == "none":
        return {}
    rounded = PRECISIONS[precision]
    layers, heads = (
        None if chosen is None else tuple(number for number in chosen if number < most)
        for chosen, most in ((kept.layers, kind.layers), (kept.heads, kind.heads))
    )

    def spec(cells: int, dtype: str, fill: float, meaning: Mapping[str, str]) -> ArraySpec:
        return ArraySpec(kind.layers, kind.heads, cells, dtype, fill, layers, heads, attributes=meaning)

    codes = {"precision": rounded.name, "formula": rounded.formula}
    if kept.topk is None:
        return {name: spec(cells, rounded.dtype, rounded.fill, codes)}
    return {
        f"{name}_topk_key": spec(cells, "uint32", NO_KEY, {"formula": "key token"}),
        f"{name}_topk_weight": spec(cells, rounded.dtype, rounded.fill, codes),
        f"{name}_topk_rest": spec(rows, "float32", float("nan"), {"formula": "weight of the row not kept"}),
    }
