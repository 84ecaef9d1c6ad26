"""This file reads the maps that leave for other programs, one example after the other."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from attnstore.errors import BadInput
from attnstore.reduce.pieces import pieces_of
from attnstore.store.attention_map import AttentionMap

if TYPE_CHECKING:
    from attnstore.store.store import Store


@dataclass(frozen=True)
class ChosenMaps:
    """Maps of one kind, of some examples, layers and heads, between tokens or words. None is all of them.

    `where` is a condition in SQL on the columns of `examples`; an example without a map of the kind is left out.
    """

    store: "Store"
    where: str | None = None
    kind: str | None = None
    layers: Sequence[int] | None = None
    heads: Sequence[int] | None = None
    level: Literal["token", "word"] = "token"

    @cached_property
    def the_kind(self) -> str:
        """The kind; NotFound for one that the store does not have."""
        return self.store.checked_kind(self.kind)

    @cached_property
    def examples(self) -> tuple[int, ...]:
        """Numbers of the examples, ascending. BadInput where there are none, NotStored without maps."""
        engine, doing = self.store.engine, "exporting maps"
        engine.cells.check_kept(self.the_kind, [], [], doing)
        places = engine.places if self.where is None else engine.computed.places(self.where, doing)
        found = sorted(number for place in places.of(self.the_kind) for number in place.example.tolist())
        if not found:
            raise BadInput(doing, f"no example with a {self.the_kind} map", "one or more", "Change --where or --kind")
        return tuple(found)

    @cached_property
    def layer_numbers(self) -> tuple[int, ...]:
        """The layers, in the order in which they are asked for: all that were kept, unless some are."""
        kept, _ = self.store.engine.cells.kept(self.the_kind)
        return tuple(kept if self.layers is None else self.layers)

    @cached_property
    def head_numbers(self) -> tuple[int, ...]:
        """The heads, likewise."""
        _, kept = self.store.engine.cells.kept(self.the_kind)
        return tuple(kept if self.heads is None else self.heads)

    def read(self, example: int) -> AttentionMap:
        """The map [layer, head, query, key] of one example. Raises as `Store.attention` does."""
        return self.store.attention(
            example, kind=self.the_kind, layer=self.layer_numbers, head=self.head_numbers, level=self.level
        )

    def size(self, example: int) -> tuple[int, int]:
        """Queries and keys of the map of one example, which is not read."""
        place = self.store.engine.places.find(self.the_kind, example)
        assert place is not None  # it is one of `examples`
        frame = self.store.engine.frames.frame(place.segment, self.the_kind, example)
        if self.level == "token":
            return len(frame.queries), len(frame.keys)
        return len(pieces_of(frame.queries, specials=True)), len(pieces_of(frame.keys, specials=True))

    def __iter__(self) -> Iterator[AttentionMap]:
        return map(self.read, self.examples)

    def about(self) -> dict[str, str]:
        """What identifies the maps, for the file that they go to."""
        info, snapshot = self.store.info, self.store.snapshot
        return {
            "title": info.title,
            "store_id": info.store_id,
            "content_hash": snapshot.content_hash,
            "licence": str(info.corpus.get("licence") or ""),
            "kind": self.the_kind,
            "level": self.level,
        }
