"""This file reads the maps of one head over the whole corpus, one example after the other."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from attnstore.errors import NotFound, NotStored
from attnstore.format.quantise import Floats
from attnstore.store.rectangles import READ_CELLS, Rectangle

if TYPE_CHECKING:
    from attnstore.store.store import Store


def head_maps(store: "Store", layer: int, head: int, *, kind: str | None = None) -> Iterator[tuple[int, Floats]]:
    """Number and map [query, key], float32, of one head in each example, in the order in which they are stored.

    `kind` None is the store's first. Some examples are read at a time, so that memory does not grow with the corpus.
    NotFound for a layer or head that the model does not have, NotStored for one whose maps were not kept whole.
    """
    kind = store.checked_kind(kind)
    doing = f"reading the {kind} maps of layer {layer}, head {head}"
    shape, cells = store.info.kinds[kind], store.engine.cells
    for word, number, most in (("layer", layer, shape.layers), ("head", head, shape.heads)):
        if not 0 <= number < most:
            raise NotFound(doing, f"{word}={number}", f"a {word} of this store, 0-{most - 1}")
    cells.check_kept(kind, [layer], [head], doing)
    if cells.topk:
        raise NotStored(doing, f"this store kept the {cells.topk} largest weights of a row", "every weight")
    return _maps(store, kind, Rectangle(slice(layer, layer + 1), slice(head, head + 1)))


def _maps(store: "Store", kind: str, part: Rectangle) -> Iterator[tuple[int, Floats]]:
    for place in store.engine.places.of(kind):
        for block in place.blocks(READ_CELLS, whole=True):
            maps = store.engine.cells.maps(block, part)
            yield from ((number, own[0, 0]) for number, own in zip(block.example.tolist(), maps, strict=True))
