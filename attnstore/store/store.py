"""This file is the door to a store: open one, ask it, read its maps."""

import html
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from attnstore.errors import BadInput, NotFound
from attnstore.format.manifest import Snapshot, StoreInfo, Unit
from attnstore.format.names import KINDS
from attnstore.format.remote import Place
from attnstore.store.contents import Contents, read_contents

# Opening reads JSON only: DuckDB, Arrow, Zarr and NumPy are loaded by the first question.
if TYPE_CHECKING:
    from attnstore.catalogue.question import Question
    from attnstore.format.quantise import Floats
    from attnstore.reduce.words import PieceMode
    from attnstore.store.attention_map import AttentionMap
    from attnstore.store.engine import Engine
    from attnstore.store.norm_weights import Weights
    from attnstore.store.prepared import Prepared
    from attnstore.store.result import Result
    from attnstore.store.walls import Walls


def open(  # noqa: A001 - `attnstore.open` reads as it should
    path: str | Path,
    *,
    snapshot: int | None = None,
    tag: str | None = None,
    expect: str | None = None,
    threads: int | None = None,
) -> "Store":
    """The store in a folder, behind an address or in a zip file of `attnstore pack`, which is read in place.

    It is opened at its newest snapshot, or at the one that `snapshot` or `tag` names.

    `expect` is the content hash that the store must have, or its first eight digits or more. Before the first table or
    map of a folder is read, every listed file is checked to exist with its recorded size. `threads` is how many DuckDB
    uses, None for one a core; with 1 sums are added in one order, so that answers are equal to the last digit.

    An address is that of a store in a service, "https://HOST/stores/NAME", or of its files, "https://HOST/files/HASH",
    where the variable ATTNSTORE_TOKEN holds the token if one is asked for; "s3://BUCKET/FOLDER", with keys from the
    variables AWS_…; or "hf://datasets/OWNER/NAME" of the Hugging Face Hub. A table is fetched whole when it is
    first used and kept in the folder ATTNSTORE_CACHE; of maps only the parts that are asked for are fetched.

    Raises NotAStore, UnsupportedFormat, NotFound, BadInput, Damaged or MissingExtra.
    """
    return Store(read_contents(path, snapshot=snapshot, tag=tag, expect=expect), threads=threads)


class Store:
    """One model's attention over one corpus, as one snapshot sees it. Threads may share it; close it, or use `with`."""

    def __init__(
        self,
        contents: Contents,
        walls: "Walls | None" = None,
        prepared: "Prepared | None" = None,
        threads: int | None = None,
    ) -> None:
        self.contents, self._walls, self._prepared, self.threads = contents, walls, prepared, threads
        self._lock = threading.Lock()
        self._engine: Engine | None = None
        self._closed = False

    @property
    def path(self) -> Place:
        """The folder of the store, or its address."""
        return self.contents.root

    @property
    def info(self) -> StoreInfo:
        """What was planned: model, corpus, kinds, precision, what is kept."""
        return self.contents.info

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot that is read; its `content_hash` pins every answer."""
        return self.contents.snapshot

    @property
    def units(self) -> tuple[Unit, ...]:
        """The segments and additions of the snapshot."""
        return self.contents.units

    @property
    def questions(self) -> "Mapping[str, Question]":
        """The questions that ship, by name."""
        from attnstore.catalogue.catalogue import questions

        return questions()

    @property
    def tables(self) -> dict[str, dict[str, str]]:
        """The tables that SQL can name, each with its columns and their SQL types."""
        from attnstore.store.database import column_types

        return column_types(self.engine.database)

    def sql(self, text: str, /, **params: object) -> "Result":
        """The answer to one SELECT over `tables`; `params` fill its $names.

        NotFound for an unknown table or column, BadInput for parameters that do not fit, BadQuestion for other
        errors of the SQL, NotStored for facts or maps that were not kept, Damaged for a file that is not as recorded.
        """
        from attnstore.store.asking import run

        return run(self, text, params)

    def ask(self, question: str, /, *, where: str | None = None, **params: object) -> "Result":
        """The answer to a question that ships, by name, or to one of your own in a .sql file, by its path.

        `where` narrows it to some examples: a condition in SQL on the columns of `examples`, such as
        "label = 'positive' and n_tokens < 64". Facts that the question needs with other parameters than were stored
        are computed from the maps. Raises as `sql` does, and NotFound for an unknown question, BadInput for a
        parameter that it does not take, NotStored for an annotation that the store lacks.
        """
        from attnstore.store.asking import ask

        return ask(self, question, params, where)

    def attention(
        self,
        example: int | str,
        *,
        kind: str | None = None,
        layer: int | Sequence[int] | None = None,
        head: int | Sequence[int] | None = None,
        level: Literal["token", "word"] = "token",
        pieces: "PieceMode" = "mean",
        specials: bool = True,
        tokens: slice | None = None,
        hide: Sequence[str] = (),
        renormalise: bool = False,
        weights: "Weights" = "attention",
    ) -> "AttentionMap":
        """The maps of one example: see `attnstore.store.maps.attention`."""
        from attnstore.store.maps import attention

        return attention(
            self,
            example,
            kind=kind,
            layer=layer,
            head=head,
            level=level,
            pieces=pieces,
            specials=specials,
            tokens=tokens,
            hide=hide,
            renormalise=renormalise,
            weights=weights,
        )

    def head_maps(self, layer: int, head: int, *, kind: str | None = None) -> "Iterator[tuple[int, Floats]]":
        """The maps of one head, example by example: see `attnstore.store.head_maps.head_maps`."""
        from attnstore.store.head_maps import head_maps

        return head_maps(self, layer, head, kind=kind)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The attention kinds of the model: encoder, decoder, cross, in this order."""
        return tuple(name for name in KINDS if name in self.info.kinds)

    def checked_kind(self, kind: str | None) -> str:
        """`kind`, or the store's first one for None; NotFound for one that it does not have."""
        if kind is None:
            return self.kinds[0]
        if kind not in self.kinds:
            raise NotFound(f"reading {self.path}", f"kind={kind!r}", f"a kind of this store: {', '.join(self.kinds)}")
        return kind

    @property
    def engine(self) -> "Engine":
        """What the store is read with."""
        with self._lock:
            if self._closed:
                raise BadInput(f"reading {self.path}", "the store was closed", "an open one", "Open it again")
            if self._engine is None:
                from attnstore.store.engine import Engine

                self._engine = Engine(self.contents, self._walls, self._prepared, self.threads)
                # DuckDB complains at the end of Python about connections that nobody closed.
                weakref.finalize(self, self._engine.close)
            return self._engine

    def close(self) -> None:
        """Close the store; results that were handed out stay."""
        with self._lock:
            engine, self._engine, self._closed = self._engine, None, True
        if engine is not None:
            engine.close()

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def summary(self) -> dict[str, Any]:
        """What `repr` shows: model, sizes and state, by name."""
        info, contents = self.info, self.contents
        examples = sum(unit.rows.get("examples", 0) for unit in contents.segments)
        heads = ", ".join(f"{name} {info.kinds[name].layers} x {info.kinds[name].heads}" for name in self.kinds)
        maps = f"topk:{info.kept.topk}" if info.kept.topk else info.kept.maps
        return {
            "title": info.title,
            "model": f"{info.model.get('name', 'unknown')} {info.model.get('revision') or ''}".strip(),
            "layers x heads": heads,
            "examples": f"{examples} of {info.n_examples}",
            "precision": f"{info.precision}, maps: {maps}",
            "size": f"{contents.n_bytes / 1e6:.1f} MB in {len(contents.segments)} segments",
            "snapshot": f"{self.snapshot.number}, content {self.snapshot.content_hash[:16]}",
            "path": str(self.path),
        }

    def __repr__(self) -> str:
        lines = (f"{name:>14}  {value}" for name, value in self.summary().items())
        return "\n".join(["attnstore store", *lines])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>"
            for name, value in self.summary().items()
        )
        return f"<table><caption>attnstore store</caption>{rows}</table>"
