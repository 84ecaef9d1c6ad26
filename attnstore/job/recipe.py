"""This file reads a recipe: the TOML that says what to ingest, with which model, and what to keep."""

import difflib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, get_args, get_origin

from attnstore.errors import BadInput
from attnstore.job.recipe_keys import (
    CHOICES,
    NEED_A_TASK,
    OF_ONE_PASS,
    TASKS,
    AblationKeys,
    CorpusKeys,
    EncodeKeys,
    KeepKeys,
    ModelKeys,
    TaskKeys,
    WordsKeys,
)
from attnstore.paths import shipped


@dataclass(frozen=True, slots=True)
class Recipe:
    """One reproducible ingest. `folder` is where relative paths begin and is not part of the record."""

    corpus: CorpusKeys
    model: ModelKeys
    words: WordsKeys = field(default_factory=WordsKeys)
    encode: EncodeKeys = field(default_factory=EncodeKeys)
    keep: KeepKeys = field(default_factory=KeepKeys)
    task: TaskKeys = field(default_factory=TaskKeys)
    ablations: AblationKeys = field(default_factory=AblationKeys)
    title: str = ""
    folder: Path = Path()

    @classmethod
    def read(cls, path: str | Path, overrides: Mapping[str, object] | None = None) -> "Recipe":
        """The recipe in a TOML file; `overrides` such as {"model.name": …} replace single keys.

        BadInput names the file and the key; an unknown key names the nearest valid one.
        """
        path = Path(path)
        doing = f"reading the recipe {path}"
        try:
            value = tomllib.loads(path.read_text(encoding="utf-8-sig"))
        except FileNotFoundError as error:
            raise BadInput(doing, "no such file", remedy=f"Recipes to start from lie in {shipped('ingest')}") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
            raise BadInput(doing, str(error), "a TOML file in UTF-8") from error
        return cls.build(value, overrides, folder=path.parent, doing=doing)

    @classmethod
    def build(
        cls,
        value: Mapping[str, Any],
        overrides: Mapping[str, object] | None = None,
        *,
        folder: Path = Path(),
        doing: str = "reading a recipe",
    ) -> "Recipe":
        """The recipe in a nested mapping shaped like the TOML."""
        tables = {name: dict(table) if isinstance(table, Mapping) else table for name, table in value.items()}
        for key, replacement in (overrides or {}).items():
            *path, name = key.split(".")
            place: Any = tables
            for table in path:
                place[table] = dict(place[table]) if isinstance(place.get(table), Mapping) else place.get(table, {})
                place = place[table]
                if not isinstance(place, dict):
                    raise BadInput(doing, f"the key {key!r}", f"{table!r} to be a table")
            place[name] = replacement
        parts = {f.name: f.type for f in fields(cls) if f.name != "folder"}
        _known(doing, tables, list(parts), "")
        built: dict[str, Any] = {"folder": folder, "title": _typed(doing, "title", str, tables.get("title", ""))}
        for name, kind in _TABLES.items():
            built[name] = _table(doing, name, kind, tables.get(name, {}))
        return _checked(doing, cls(**built))

    def record(self) -> dict[str, Any]:
        """The recipe as it is kept in store.json: every key, defaults filled in."""
        value = asdict(self)
        del value["folder"]
        return value

    def record_of_maps(self) -> dict[str, Any]:
        """The part of the record that decides what the segments hold: evidence may be added to a store later."""
        value = self.record()
        del value["task"], value["ablations"], value["keep"]["evidence"]
        return value


_TABLES: dict[str, type] = {
    "corpus": CorpusKeys,
    "model": ModelKeys,
    "words": WordsKeys,
    "encode": EncodeKeys,
    "keep": KeepKeys,
    "task": TaskKeys,
    "ablations": AblationKeys,
}


def parse_overrides(settings: Sequence[str]) -> dict[str, object]:
    """{"model.name": …} from words such as model.name=bert-base-uncased.

    The value is TOML and, where it is not or the key wants text, plain text: a revision may look like a number.
    """
    overrides: dict[str, object] = {}
    for setting in settings:
        key, equals, text = setting.partition("=")
        if not equals or not key:
            raise BadInput(f"reading --set {setting}", "no '='", "key=value, such as model.name=bert-base-uncased")
        try:
            value = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            value = text
        overrides[key] = text if _wants_text(key) and not isinstance(value, str | list) else value
    return overrides


def _wants_text(key: str) -> bool:
    """Whether a key holds text, or a list of texts."""
    table, _, name = key.rpartition(".")
    if not table:
        return name == "title"
    if table == "corpus.columns":
        return True
    kind = {f.name: f.type for f in fields(_TABLES[table])}.get(name) if table in _TABLES else None
    return kind is str or get_args(kind) == (str, ...)


def keys() -> list[tuple[str, str, Any]]:
    """(key, type, default) of every key of a recipe, in order, for the documentation; MISSING marks required ones."""
    rows: list[tuple[str, str, Any]] = [("title", "str", "")]
    for name, kind in _TABLES.items():
        for f in fields(kind):
            default = f.default if f.default_factory is MISSING else f.default_factory()
            rows.append((f"{name}.{f.name}", getattr(f.type, "__name__", str(f.type)), default))
    return rows


def _known(doing: str, found: Mapping[str, Any], valid: list[str], prefix: str) -> None:
    for key in found:
        if key not in valid:
            near = difflib.get_close_matches(key, valid, 1, 0.5)
            hint = f"Did you mean {prefix}{near[0]}?" if near else f"Valid keys: {', '.join(valid)}"
            raise BadInput(doing, f"the unknown key {prefix}{key}", remedy=hint)


def _table(doing: str, name: str, kind: type, value: object) -> Any:
    if not isinstance(value, Mapping):
        raise BadInput(doing, f"{name} = {value!r}", f"a table [{name}]")
    valid = {f.name: f for f in fields(kind)}
    _known(doing, value, list(valid), f"{name}.")
    for key, f in valid.items():
        if f.default is MISSING and f.default_factory is MISSING and key not in value:
            raise BadInput(doing, f"no {name}.{key}", remedy=f"Add {key} = … under [{name}]")
    return kind(**{key: _typed(doing, f"{name}.{key}", valid[key].type, given) for key, given in value.items()})


def _typed(doing: str, key: str, kind: Any, value: object) -> object:
    if get_origin(kind) is tuple:
        items = [value] if isinstance(value, str | int) and not isinstance(value, bool) else value
        if not isinstance(items, list | tuple):
            raise BadInput(doing, f"{key} = {value!r}", "a list")
        return tuple(_typed(doing, key, get_args(kind)[0], item) for item in items)
    if get_origin(kind) is not None:
        if not isinstance(value, Mapping):
            raise BadInput(doing, f"{key} = {value!r}", "a table")
        return {str(name): _typed(doing, f"{key}.{name}", str, item) for name, item in value.items()}
    if not isinstance(value, kind) or isinstance(value, bool):
        raise BadInput(doing, f"{key} = {value!r}", {"str": "text", "int": "a whole number"}[kind.__name__])
    choices = CHOICES.get(key)
    if choices and value not in choices:
        raise BadInput(doing, f"{key} = {value!r}", f"one of {', '.join(choices)}")
    return value


def _checked(doing: str, recipe: Recipe) -> Recipe:
    source, keep = recipe.words.source, recipe.keep
    if source not in ("gold", "none") and not source.startswith("spacy:"):
        raise BadInput(doing, f"words.source = {source!r}", "gold, none or spacy:PIPELINE")
    if source == "none" and recipe.words.feed == "joined_words":
        raise BadInput(doing, 'words.feed = "joined_words" without words', 'words.source = "gold" or "spacy:PIPELINE"')
    word, _, number = keep.maps.partition(":")
    if keep.maps not in ("all", "none") and not (word == "topk" and number.isdigit() and 0 < int(number) < 65536):
        raise BadInput(doing, f"keep.maps = {keep.maps!r}", "all, none or topk:N with N from 1 to 65535")
    _check_corpus(doing, recipe.corpus)
    _check_task(doing, recipe)
    if recipe.encode.max_length < 0:
        raise BadInput(doing, f"encode.max_length = {recipe.encode.max_length}", "0 or more")
    if recipe.corpus.kind == "arrays" and (source.startswith("spacy:") or recipe.words.feed != "raw_text"):
        expected = "the tokens and words that come with ready-made maps"
        raise BadInput(doing, f'words.source = "{source}", words.feed = "{recipe.words.feed}"', expected)
    if recipe.corpus.kind == "tokens" and recipe.words.feed != "raw_text":
        raise BadInput(doing, f'words.feed = "{recipe.words.feed}"', "the tokens as the corpus gives them")
    if recipe.corpus.unit == "window" and recipe.corpus.kind != "conllu":
        raise BadInput(doing, 'corpus.unit = "window"', 'corpus.kind = "conllu"')
    return recipe


def _check_corpus(doing: str, corpus: CorpusKeys) -> None:
    if corpus.kind != "repeated_random" and not corpus.path:
        raise BadInput(doing, "no corpus.path", remedy="Add path = … under [corpus]")
    if corpus.kind == "repeated_random" and corpus.path:
        raise BadInput(doing, f"corpus.path = {list(corpus.path)}", "no path: this kind draws its tokens at random")
    for name, least in (("length", 2), ("count", 1)):
        if getattr(corpus, name) < least:
            raise BadInput(doing, f"corpus.{name} = {getattr(corpus, name)}", f"{least} or more")


def _check_task(doing: str, recipe: Recipe) -> None:
    kind, evidence = recipe.task.kind, recipe.keep.evidence
    if kind and kind not in TASKS and ":" not in kind:
        near = difflib.get_close_matches(kind, TASKS, 1, 0.5)
        remedy = f"Did you mean {near[0]}?" if near else ""
        raise BadInput(doing, f"task.kind = {kind!r}", f'one of {", ".join(TASKS)}, or "module:function"', remedy)
    if not kind and (lacking := [name for name in evidence if name in NEED_A_TASK]):
        raise BadInput(
            doing,
            f"keep.evidence = {list(lacking)} without a task",
            "what the model was trained to do, whose loss or score they are about",
            f"Add kind = … under [task]: {', '.join(TASKS)}",
        )
    keys = recipe.ablations
    for name in ("plan", "intervention", "order"):
        if not getattr(keys, name):
            raise BadInput(doing, f"ablations.{name} = []", "one at least")
    for name, least in (("steps", min(keys.steps, default=1)), ("width", keys.width), ("depth", keys.depth)):
        if least < 1:
            raise BadInput(doing, f"ablations.{name} holds {least}", "1 or more")
    if kind == "similarity" and (unfit := [name for name in evidence if name in OF_ONE_PASS]):
        found = f'keep.evidence = {unfit} with task.kind = "similarity"'
        raise BadInput(doing, found, "evidence about single passes: a similarity feeds the texts of a pair apart")
    if evidence and recipe.corpus.kind == "arrays":
        raise BadInput(doing, f"keep.evidence = {list(evidence)}", "none: maps made elsewhere come without their model")
