"""This file reads a configuration, chooses the class that loads it, and says what that class takes."""

import inspect
import json
import re
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
import transformers
from huggingface_hub.errors import StrictDataclassError
from safetensors import SafetensorError
from torch import nn
from transformers import (
    CONFIG_MAPPING,
    AutoConfig,
    AutoModel,
    AutoModelForSeq2SeqLM,
    AutoModelForTextEncoding,
    AutoTokenizer,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.models.auto.modeling_auto import MODEL_FOR_TEXT_ENCODING_MAPPING_NAMES, MODEL_MAPPING_NAMES

from attnstore.capture.facts import Takes
from attnstore.capture.families import family_of
from attnstore.capture.quiet import quiet
from attnstore.errors import BadInput, NotCaptured

_REMEDY = "Check the name and the connection; a model in a folder or package needs neither"


def read_config(name: str, place: Path | str, revision: str | None) -> PreTrainedConfig:
    """The configuration at `place`; raises BadInput where there is none that transformers knows.

    Where config.json has no model_type, the folder's name says it, as in "bert_pretrained".
    """
    if isinstance(place, Path) and revision:
        raise BadInput(
            f"loading {name}", f"revision {revision!r} of a folder", "a hub id", "Leave it out: a folder has its hashes"
        )
    if isinstance(place, Path) and not (place / "config.json").is_file():
        raise BadInput(f"loading {name}", "there is no config.json", "a folder as save_pretrained writes it")
    reader = CONFIG_MAPPING[_type_in_name(name, place)] if isinstance(place, Path) and _untyped(place) else AutoConfig
    try:
        with quiet():
            config: PreTrainedConfig = reader.from_pretrained(place, **_where(place, revision))
    except StrictDataclassError as error:
        raise _impossible(name, error) from error
    except (OSError, ValueError, KeyError) as error:
        raise BadInput(f"reading the configuration of {name}", _first_line(error), remedy=_REMEDY) from error
    return config


def outline(name: str, config: PreTrainedConfig) -> PreTrainedModel:
    """The model of a configuration without its numbers; raises BadInput where there can be no such model."""
    try:
        with torch.device("meta"), quiet():
            model: PreTrainedModel = auto_class(config).from_config(config)
    except ImportError as error:
        said = " ".join(str(error).split())
        raise BadInput(f"building {name}", said, "the packages that its code imports", "Install them") from error
    # Every file of transformers checks its sizes in its own way, or divides by them.
    except Exception as error:
        raise _impossible(name, error) from error
    return model


def read_weights(
    name: str, place: Path | str, commit: str | None, config: PreTrainedConfig, device: str, head: str = ""
) -> PreTrainedModel:
    """The model in float32 and eager attention, on `device`; `head` is a transformers auto class, "" the bare model.

    Raises BadInput where the files do not give every weight: transformers would fill the rest with random numbers,
    whose maps look like any others. To the bare model a missing pooler is no matter; it comes after the last layer.
    """
    try:
        with quiet():
            loader = getattr(transformers, head) if head else auto_class(config)
            model, report = loader.from_pretrained(
                place,
                config=config,
                dtype=torch.float32,
                attn_implementation="eager",
                output_loading_info=True,
                **_where(place, commit),
            )
    except (OSError, ValueError, RuntimeError, SafetensorError, UnpicklingError) as error:
        raise BadInput(f"loading the weights of {name}", _first_line(error), remedy=_REMEDY) from error
    missing = {*report["missing_keys"], *map(str, report["mismatched_keys"])}
    lost = sorted(key for key in missing if head or "pooler" not in key)
    if lost:
        raise BadInput(
            f"loading the weights of {name}",
            f"{len(lost)} weights of {type(model).__name__} are not in its files or have another shape: {lost[0]}, …",
            "every weight, those of the task's head too" if head else "every weight up to the last layer",
            "Name a model that was trained for this task, or another [task] kind"
            if head
            else "The files belong to another model, or to only a part of this one",
        )
    try:
        moved: PreTrainedModel = model.to(device)
    except (RuntimeError, AssertionError) as error:  # torch without CUDA asserts
        raise BadInput(
            f"moving {name} to the device {device!r}",
            _first_line(error),
            "a device that torch reaches, with room for the model",
            "Leave the device out for the CPU",
        ) from error
    return moved


def read_tokenizer(name: str, place: Path | str, commit: str | None) -> PreTrainedTokenizerBase:
    """The tokenizer at `place`; raises BadInput where it cannot be loaded."""
    try:
        with quiet():
            tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(place, **_where(place, commit))
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise BadInput(f"loading the tokenizer of {name}", _first_line(error), remedy=_REMEDY) from error
    return tokenizer


def auto_class(config: PreTrainedConfig) -> Any:
    """The transformers auto class that builds the bare model of a configuration."""
    kind: str = config.model_type
    encoders = {str(key): str(name) for key, name in MODEL_FOR_TEXT_ENCODING_MAPPING_NAMES.items()}
    named = (config.architectures or [""])[0]
    if named and encoders.get(kind) == named != MODEL_MAPPING_NAMES.get(kind):
        return AutoModelForTextEncoding
    return AutoModel if kind in MODEL_MAPPING_NAMES else AutoModelForSeq2SeqLM


def takes(model: nn.Module, argument: str) -> bool:
    """Whether the model's forward pass has such an argument."""
    return argument in inspect.signature(model.forward).parameters


def takes_target(model: nn.Module) -> bool:
    """Whether it has a decoder that reads a second text."""
    return takes(model, "decoder_input_ids")


def reads(model: PreTrainedModel) -> Takes:
    """What the model reads; raises NotCaptured for anything but text and images."""
    if takes(model, "input_ids"):
        return "text"
    if takes(model, "pixel_values"):
        return "pixels"
    raise NotCaptured(
        f"looking at what {type(model).__name__} reads",
        f"it reads {model.main_input_name}",
        "a model of text (input_ids) or of images (pixel_values)",
    )


def n_types_of(model: nn.Module, config: PreTrainedConfig) -> int:
    """How many token types the model tells apart; 0 where it takes none.

    GPT-2 takes `token_type_ids` too, but looks them up among its words: feeding zeros would change its maps.
    """
    if not takes(model, "token_type_ids"):
        return 0
    declared = family_of(config.model_type).token_types
    return declared if declared is not None else int(getattr(config, "type_vocab_size", None) or 0)


def _impossible(name: str, error: Exception) -> BadInput:
    said = " ".join(str(error).split())
    return BadInput(
        f"reading the configuration of {name}",
        f"no model can be built from it: {type(error).__name__}: {said}",
        "sizes that fit together, as save_pretrained writes them",
        "Compare config.json with that of the model it was made from",
    )


def _untyped(folder: Path) -> bool:
    try:
        found = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except ValueError:
        return False  # transformers says what is wrong with it
    return isinstance(found, dict) and "model_type" not in found


def _type_in_name(name: str, folder: Path) -> str:
    """The longest model type among the words of the folder's name: before there was a model_type, names had to say it.

    A wrong one does not go unnoticed, since the weights would not be found under its names.
    """
    words = _spelled(folder.resolve().name)
    fitting = [kind for kind in CONFIG_MAPPING if f"-{_spelled(kind)}-" in f"-{words}-"]
    if not fitting:
        raise BadInput(
            f"reading the configuration of {name}",
            "config.json has no model_type, and the folder's name tells none",
            'a type that transformers knows, such as "model_type": "bert"',
            "Add it to config.json, in a copy of the folder",
        )
    return str(max(fitting, key=len))


def _spelled(name: str) -> str:
    return re.sub("[^a-z0-9]+", "-", name.lower())


def _where(place: Path | str, revision: str | None) -> dict[str, Any]:
    if isinstance(place, Path):
        return {"local_files_only": True, "trust_remote_code": False}
    return {"revision": revision or "main", "trust_remote_code": False}


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
