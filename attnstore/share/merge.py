"""This file makes one store of several stores of one model, one after the other."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from attnstore.errors import BadInput
from attnstore.format.manifest import StoreInfo, dumps
from attnstore.share.making import Wanted
from attnstore.share.rewrite import check_free, write_store
from attnstore.share.source import Piece, Source
from attnstore.store.store import open as open_store


def merge(sources: Sequence[str | Path], target: str | Path) -> Path:
    """Write a new store with the examples of all `sources`, in this order; its folder.

    They must be of the same model, tokenizer, kinds, precision, kept maps and facts. Examples are numbered anew, and
    segments follow one another. Annotations are carried; facts that were computed later where all sources have them
    with the same parameters; evidence where all have it, made alike. Switched-off heads were scored over the examples
    of one source, and are left out. store.json tells what was.

    BadInput that says what differs, where a store is given twice, or where `target` is taken. The sources are not
    changed, and `target` appears whole or not at all.
    """
    doing, place = f"merging into {target}", Path(target)
    if len(sources) < 2:
        raise BadInput(doing, f"{len(sources)} stores", "two or more")
    check_free(place, doing)
    with ExitStack() as stack:
        found = [
            Source(stack.enter_context(closing(open_store(path))), number, doing) for number, path in enumerate(sources)
        ]
        seen: dict[str, Source] = {}
        for source in found:
            check_alike(found[0].info, source.info, f"{found[0].root} and {source.root}", doing)
            other = seen.setdefault(source.store.snapshot.content_hash, source)
            if other is not source:
                raise BadInput(doing, f"{other.root} and {source.root} hold the same", "each store once")
        return write_store(Wanted(place, doing, found, _info(found), list(_pieces(found))))


def check_alike(one: StoreInfo, other: StoreInfo, which: str, doing: str) -> None:
    """Raise BadInput, which says what differs, unless examples of the two stores may lie in one."""
    for what, mine, yours in (
        ("model", _model(one.model), _model(other.model)),
        ("tokenizer", one.tokenizer, other.tokenizer),
        ("kinds", _plain(one.kinds), _plain(other.kinds)),
        ("precision", one.precision, other.precision),
        ("kept", asdict(one.kept), asdict(other.kept)),
        ("facts", one.facts, other.facts),
        ("task", one.recipe.get("task"), other.recipe.get("task")),
        *((f"recipe.{key}", one.recipe.get(key), other.recipe.get(key)) for key in ("encode", "words")),
    ):
        if dumps(mine) != dumps(yours):
            raise BadInput(doing, f"{which} differ in {what}: {_difference(mine, yours)}", "stores made alike")


def _plain(kinds: Mapping[str, Any]) -> dict[str, Any]:
    return {name: asdict(kind) for name, kind in kinds.items()}


def _model(model: Mapping[str, Any]) -> dict[str, Any]:
    """What a model is: where its files are hashed, the folder that it was read from does not matter."""
    # The longest input is what a recipe allowed, or the corpus had: no part of the model.
    ignored = {"longest_input", *(("name",) if model.get("files") else ())}
    return {key: value for key, value in model.items() if key not in ignored}


def _difference(mine: Any, yours: Any) -> str:
    if isinstance(mine, Mapping) and isinstance(yours, Mapping):
        keys = [key for key in sorted({*mine, *yours}) if mine.get(key) != yours.get(key)]
        return ", ".join(f"{key} is {str(mine.get(key))[:60]} and {str(yours.get(key))[:60]}" for key in keys[:3])
    return f"{str(mine)[:60]} and {str(yours)[:60]}"


def _pieces(sources: Sequence[Source]) -> Iterator[list[Piece]]:
    number = 0
    for source in sources:
        for segment in range(len(source.info.segments)):
            piece = source.whole(segment, number)
            number += len(piece.examples)
            yield [piece]


def _info(sources: Sequence[Source]) -> StoreInfo:
    """The facts of all corpora together; of the rest those of the first store."""
    infos = [source.info for source in sources]
    corpus = {
        "kind": _joined(infos, "kind", ", "),
        # All of them hold for the whole: whoever shares it must keep every one.
        "licence": _joined(infos, "licence", "; "),
        "examples": sum(info.n_examples for info in infos),
        "skipped": sum(int(info.corpus.get("skipped", 0)) for info in infos),
        "fingerprint": hashlib.sha256(
            "\n".join(str(info.corpus.get("fingerprint", "")) for info in infos).encode()
        ).hexdigest(),
    }
    paths = [path for info in infos for path in info.recipe.get("corpus", {}).get("path", ())]
    recipe = {**infos[0].recipe, "corpus": {**infos[0].recipe.get("corpus", {}), "path": paths}}
    recipe["corpus"] |= {key: corpus[key] for key in ("kind", "licence")}
    title = " + ".join(dict.fromkeys(info.title for info in infos if info.title))
    return replace(infos[0], title=title, corpus=corpus, recipe=recipe)


def _joined(infos: Sequence[StoreInfo], key: str, between: str) -> str:
    found = dict.fromkeys(str(info.corpus.get(key, "")) or "not stated" for info in infos)
    return "" if list(found) == ["not stated"] else between.join(found)
