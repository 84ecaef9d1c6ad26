"""This file loads a model, or describes it from its configuration alone."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

from attnstore.capture.captor import Captor
from attnstore.capture.classes import (
    n_types_of,
    outline,
    read_config,
    read_tokenizer,
    read_weights,
    reads,
    takes_target,
)
from attnstore.capture.encode import Encoder
from attnstore.capture.facts import KindFacts, ModelFacts
from attnstore.capture.families import family_of
from attnstore.capture.folder import model_files
from attnstore.capture.locate import locate
from attnstore.capture.roads import choose
from attnstore.capture.stacks import declared_causal, kinds_of, max_length_of
from attnstore.capture.symbols import cannot_split, symbol_tokenizer, symbols_only
from attnstore.capture.target import start_of
from attnstore.errors import BadInput, NotCaptured

if TYPE_CHECKING:
    from attnstore.capture.pixels import Pixels

__all__ = ["Captor", "KindFacts", "ModelFacts", "Split", "describe", "load", "load_encoder"]

Split = Literal["model", "given"]
"""Who splits a text into tokens: the model's own tokenizer, or whoever made the corpus."""


def describe(name: str, *, revision: str | None = None, hash_weights: bool = False) -> ModelFacts:
    """What a model's configuration says of it; no weights are loaded, and `capture` is "".

    `files` leaves the weights out unless `hash_weights`, which reads those of a folder once. Raises BadInput if there
    is no such model, NotCaptured if its maps cannot be had.
    """
    place = locate(name)
    config = read_config(name, place, revision)
    model = outline(name, config)
    return _facts(name, config, model, _files(place, model, weights=hash_weights))


def load_encoder(name: str, *, revision: str | None = None, tokens: Split = "model") -> Encoder:
    """The encoder that `load` gives, without loading weights; raises BadInput for a model that reads images.

    With `tokens="given"` a folder needs no more of a tokenizer than vocab.txt, one symbol a line; otherwise BadInput
    says what to do with such a folder.
    """
    place = locate(name)
    config = read_config(name, place, revision)
    model = outline(name, config)
    if reads(model) != "text":
        remedy = 'A corpus of images has the kind "images"'
        raise BadInput(f"loading the tokenizer of {name}", "the model reads images", "a model that reads text", remedy)
    return _encoder(name, place, _commit(place, config, revision), model, tokens, _files(place, model, weights=False))


def load_pixels(name: str, *, revision: str | None = None) -> "Pixels":
    """What makes images ready for a model, without loading weights; raises BadInput for a model that reads text."""
    from attnstore.capture.pixels import Pixels  # needs Pillow, which no corpus of texts does

    place = locate(name)
    config = read_config(name, place, revision)
    model = outline(name, config)
    if reads(model) != "pixels":
        remedy = "Name a model of images alone, or a corpus of texts"
        raise BadInput(f"preparing images for {name}", "the model reads text", "a model that reads images", remedy)
    return Pixels(name, place, _commit(place, config, revision), model)


def load(
    name: str, *, revision: str | None = None, device: str = "cpu", tokens: Split = "model", head: str = ""
) -> Captor:
    """A model ready for capture, in float32 and with dropout off, on the first road that gives the library's own maps.

    `name` is a folder, `package:NAME/FOLDER` or a hub id; only a hub id may be downloaded, all of it at one commit.
    `tokens` is as in `load_encoder`. `head` names the transformers auto class that adds a task's head, such as
    AutoModelForMaskedLM; "" is the bare model. Raises BadInput for a folder without configuration, weights or tokenizer
    and for files that lack some of the weights, NotCaptured if no road works.
    """
    place = locate(name)
    config = read_config(name, place, revision)
    commit = _commit(place, config, revision)
    files = _files(place, outline(name, config), weights=True)
    model = read_weights(name, place, commit, config, device, head)
    facts = _facts(name, config, model, files)
    encoder = _encoder(name, place, commit, model, tokens, files) if facts.takes == "text" else None
    if encoder is not None and head:
        # Heads of decoders read the last token that is not this one.
        model.config.get_text_config().pad_token_id = model.config.pad_token_id = encoder.pad_id
    return choose(model, facts, encoder)


def _commit(place: Path | str, config: PreTrainedConfig, revision: str | None) -> str | None:
    # A branch may move between two downloads; the configuration's commit holds for the rest.
    return None if isinstance(place, Path) else getattr(config, "_commit_hash", None) or revision


def _files(place: Path | str, model: PreTrainedModel, *, weights: bool) -> Mapping[str, str]:
    if not isinstance(place, Path):
        return {}
    return model_files(place, weights=weights, tokenizer=reads(model) == "text")


def _encoder(
    name: str,
    place: Path | str,
    commit: str | None,
    model: PreTrainedModel,
    tokens: Split,
    files: Mapping[str, str],
) -> Encoder:
    if isinstance(place, Path) and symbols_only(place):
        if tokens == "model":
            raise cannot_split(name)
        tokenizer = symbol_tokenizer(place)
    else:
        tokenizer = read_tokenizer(name, place, commit)
    rows: int | None = getattr(model.get_input_embeddings(), "num_embeddings", None)
    _check_ids(name, tokenizer, rows)
    encoder = Encoder(tokenizer, n_types=n_types_of(model, model.config), start=start_of(model), files=files)
    if rows is not None and encoder.pad_id >= rows:
        # A padding token that was added to the tokenizer alone; the mask hides whatever stands there.
        encoder.pad_id = 0
    return encoder


def _check_ids(name: str, tokenizer: PreTrainedTokenizerBase, rows: int | None) -> None:
    """Raises BadInput where texts may become tokens that the model has no row for; a look-up would fail in a run."""
    if rows is None:
        return
    added: dict[str, int] = cast(Any, tokenizer).get_added_vocab()  # such as a padding token, which no text becomes
    beyond = {token: number for token, number in tokenizer.get_vocab().items() if number >= rows and token not in added}
    if beyond:
        first = min(beyond, key=beyond.__getitem__)
        raise BadInput(
            f"loading the tokenizer of {name}",
            f"{len(beyond)} tokens with ids over {rows - 1}, such as {first!r} with {beyond[first]}",
            f"ids below {rows}, the tokens that the model knows",
            "The tokenizer is another model's",
        )


def _facts(name: str, config: PreTrainedConfig, model: PreTrainedModel, files: Mapping[str, str]) -> ModelFacts:
    family = family_of(config.model_type)
    if family.refused:
        raise NotCaptured(
            f"finding the attention maps of {name} ({type(model).__name__})",
            family.refused,
            "maps [head, query, key]",
            "Use a model with full attention",
        )
    two_stacks = takes_target(model)
    causal = not two_stacks and declared_causal(model, config)
    return ModelFacts(
        name=name,
        revision=getattr(config, "_commit_hash", None) or "",
        files=files,
        class_name=type(model).__name__,
        model_type=config.model_type,
        kinds=kinds_of(config, two_stacks=two_stacks, causal=causal),
        max_length=max_length_of(model, config),
        capture="",
        dtype="float32",
        row_sums=family.row_sums,
        takes=reads(model),
    )
