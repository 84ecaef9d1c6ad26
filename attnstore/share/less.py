"""This file makes a store with fewer things in it: without words, of some examples, layers or heads, or facts alone."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from attnstore.errors import BadInput
from attnstore.format.fact_tables import MEASURED, STORED
from attnstore.format.manifest import Kept, StoreInfo
from attnstore.share.making import Wanted
from attnstore.share.rewrite import check_free, write_store
from attnstore.share.source import Numbers, Piece, Source
from attnstore.share.words_hidden import SAFE_RECIPE, HiddenWords
from attnstore.store.cited import shown_model
from attnstore.store.computed import check_condition
from attnstore.store.store import Store
from attnstore.store.store import open as open_store

_OF_TOKENS = {"token", "query", "key"}
LEVELS = ("word",)


def less(
    source: str | Path | Store,
    target: str | Path,
    *,
    no_text: bool = False,
    examples: str | Sequence[int] | None = None,
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
    level: str | None = None,
    facts_only: bool = False,
) -> Path:
    """Write a new store with less of what the store at `source`, or an opened one, has; its folder.

    `no_text` leaves out texts, lemmas, names and file names; tokens, words and labels become random numbers, equal ones
    equal. `examples` is a condition in SQL on the columns of `examples`, or a list of their numbers; those that are
    chosen are numbered anew, in order. `layers` and `heads` are those whose maps stay; facts keep all. `level` "word"
    leaves out the fact tables with a row for each token. `facts_only` leaves out all maps. store.json tells what was
    left out.

    BadInput where `target` is taken, nothing is chosen, or the source is unfinished; NoSpace, Damaged. The source is
    not changed, and `target` appears whole or not at all.
    """
    doing, place = f"exporting {source.path if isinstance(source, Store) else source}", Path(target)
    check_free(place, doing)
    if level is not None and level not in LEVELS:
        raise BadInput(doing, f"level={level!r}", f"one of {', '.join(LEVELS)}")
    with nullcontext(source) if isinstance(source, Store) else open_store(source) as store:
        found = Source(store, 0, doing)
        kept = _kept(found.info, layers, heads, facts_only, doing)
        chosen = None if examples is None else _chosen(found, examples, doing)
        segments = _pieces(found, chosen)
        without = frozenset(_without(level, facts_only))
        numbers = np.concatenate([piece.examples for pieces in segments for piece in pieces])

        def rows(table: str) -> Any:
            return found.rows(table, numbers)

        hidden = HiddenWords(found, rows) if no_text else None
        info = replace(found.info, kept=kept, corpus=_corpus(found.info, chosen))
        left_out: dict[str, Any] = {
            "text": no_text,
            "examples": found.info.n_examples - len(numbers),
            "layers": _absent(found.info, kept, "layers"),
            "heads": _absent(found.info, kept, "heads"),
            "level": level,
            "maps": facts_only,
        }
        if no_text:
            info = _nameless(info)
        elif isinstance(examples, str):
            left_out["condition"] = examples  # it may tell a word: only where words may be told
        told = {"left_out": {key: value for key, value in left_out.items() if value}}
        return write_store(Wanted(place, doing, [found], info, segments, without, hidden, told))


def _kept(
    info: StoreInfo, layers: Sequence[int] | None, heads: Sequence[int] | None, facts_only: bool, doing: str
) -> Kept:
    chosen: list[tuple[int, ...] | None] = []
    for what, wanted, there, most in (
        ("layers", layers, info.kept.layers, max(kind.layers for kind in info.kinds.values())),
        ("heads", heads, info.kept.heads, max(kind.heads for kind in info.kinds.values())),
    ):
        have = tuple(range(most)) if there is None else there
        if wanted is not None and (not wanted or not set(wanted) <= set(have)):
            raise BadInput(doing, f"{what}={list(wanted)}", f"some of those whose maps are kept: {list(have)}")
        own = there if wanted is None else tuple(sorted(set(wanted)))
        chosen.append(None if own == tuple(range(most)) else own)
    if facts_only or info.kept.maps == "none":
        return Kept("none", None, None, None)
    return Kept(info.kept.maps, chosen[0], chosen[1], info.kept.topk)


def _absent(info: StoreInfo, kept: Kept, what: str) -> list[int]:
    """Layers or heads whose maps the source keeps, and the new store does not."""
    if kept.maps == "none":
        return []
    before, after = getattr(info.kept, what), getattr(kept, what)
    most = max(getattr(kind, what) for kind in info.kinds.values())
    return [] if after is None else sorted(set(range(most) if before is None else before) - set(after))


def _chosen(source: Source, examples: str | Sequence[int], doing: str) -> Numbers:
    if isinstance(examples, str):
        check_condition(examples, doing)
        found = np.sort(source.store.engine.computed.places(examples, doing).examples.astype(np.int64))
        which = f"for which {examples} holds"
    else:
        found, which = np.unique(np.array(list(examples), np.int64)), "in the list"
        if len(found) and (found[0] < 0 or found[-1] >= source.info.n_examples):
            expected = f"numbers from 0 to {source.info.n_examples - 1}"
            raise BadInput(doing, f"examples {found[0]} to {found[-1]}", expected)
    if not len(found):
        raise BadInput(doing, f"no example {which}", "at least one")
    return found


def _pieces(source: Source, chosen: Numbers | None) -> list[list[Piece]]:
    """A piece of each segment of which examples are taken."""
    found: list[list[Piece]] = []
    number = 0
    for segment, planned in enumerate(source.info.segments):
        own = source.whole(segment, number)
        if chosen is not None:
            inside = chosen[(chosen >= planned.first) & (chosen < planned.stop)]
            own = Piece(source, segment, inside, number)
        if len(own.examples):
            found.append([own])
            number += len(own.examples)
    return found


def _without(level: str | None, facts_only: bool) -> set[str]:
    """Tables that are left out."""
    found = set(MEASURED) if facts_only else set()
    if level == "word":
        found |= {name for name, schema in STORED.items() if _OF_TOKENS & set(schema.names) and name not in ("tokens",)}
    return found


def _corpus(info: StoreInfo, chosen: Numbers | None) -> dict[str, Any]:
    corpus = dict(info.corpus)
    if chosen is not None and len(chosen) < info.n_examples:
        corpus |= {"examples": len(chosen), "skipped": 0}
    return corpus


def _nameless(info: StoreInfo) -> StoreInfo:
    """What store.json says without files, columns and labels of the corpus, and without the hash of its texts."""
    corpus = {**info.corpus, "fingerprint": ""}
    recipe = {name: info.recipe[name] for name in SAFE_RECIPE if name in info.recipe}
    recipe["corpus"] = {key: corpus.get(key, "") for key in ("kind", "licence")}
    model = {**info.model, "name": shown_model(str(info.model.get("name", "")))}  # a folder tells of who made it
    if "model" in recipe:
        recipe["model"] = {**recipe["model"], "name": model["name"]}
    return replace(info, corpus=corpus, recipe=recipe, model=model)
