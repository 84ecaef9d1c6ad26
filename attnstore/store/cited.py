"""This file says what identifies a store beside its content hash: who made its maps, of which texts."""

from collections.abc import Mapping
from pathlib import Path, PureWindowsPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from attnstore.store.store import Store

_HERE = ("path", "folder", "cache")
"""What a store may have noted of the machine that made it, and a citation leaves out."""


def shown_model(name: str) -> str:
    """The name of a model as it is told: of a path, the folder; where it lay when it ran is for nobody else."""
    if PureWindowsPath(name).is_absolute():
        return PureWindowsPath(name).name
    return Path(name).name if Path(name).is_absolute() else name


def made_of(store: "Store") -> dict[str, object]:
    """What store.json and the snapshot say of the making: files of the model with their sha256, tokenizer, corpus."""
    info = store.info
    files = info.model.get("files")
    return {
        "model_files": dict(files) if isinstance(files, Mapping) else {},
        "tokenizer": _told(info.tokenizer),
        "parser": _told(info.parser),
        "corpus": _told(info.corpus),
        "licence": str(info.corpus.get("licence") or ""),
        "created": store.snapshot.time,
    }


def _told(facts: Mapping[str, object]) -> dict[str, object]:
    return {
        name: shown_model(value) if isinstance(value, str) else value
        for name, value in facts.items()
        if name not in _HERE
    }
