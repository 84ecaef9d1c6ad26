"""This file says which files of a model's folder count, what is missing among them, and what they hash to."""

import hashlib
from pathlib import Path

from attnstore.errors import BadInput

_TOKENIZERS = (
    "tokenizer.json",
    "vocab.txt",
    "vocab.json",
    "spiece.model",
    "tokenizer.model",
    "sentencepiece.bpe.model",
    "spm.model",
)
_TOKENIZER_EXTRAS = ("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "merges.txt")
_WEIGHTS = ("*.safetensors", "pytorch_model*.bin", "*.index.json")
_BLOCK = 1 << 22


def model_files(folder: Path, *, weights: bool = True, tokenizer: bool = True) -> dict[str, str]:
    """The sha256 of the configuration, weights and tokenizer files of a folder, by name.

    Raises BadInput, saying which, where one of the three is missing; `weights` and `tokenizer` say which are wanted.
    """
    doing = f"loading a model from {folder}"
    names = [name for name in ("config.json",) if (folder / name).is_file()]
    if not names:
        raise BadInput(doing, "there is no config.json", "a folder as save_pretrained writes it", _remedy(folder))
    if weights:
        found = sorted({path.name for pattern in _WEIGHTS for path in folder.glob(pattern)})
        if not any(name.endswith((".safetensors", ".bin")) for name in found):
            raise BadInput(doing, "there are no weights", "model.safetensors or pytorch_model.bin", _remedy(folder))
        names += found
    if tokenizer:
        found = tokenizer_files(folder)
        if not found:
            raise BadInput(doing, "there is no tokenizer", f"one of {', '.join(_TOKENIZERS)}", _remedy(folder))
        names += found
    names += [name for name in _TOKENIZER_EXTRAS if tokenizer and (folder / name).is_file()]
    return {name: _sha256(folder / name) for name in names}


def tokenizer_files(folder: Path) -> list[str]:
    """Which of the files that make a tokenizer a folder has, their extras aside."""
    return [name for name in _TOKENIZERS if (folder / name).is_file()]


def _remedy(folder: Path) -> str:
    held = sorted(path.name for path in folder.iterdir())[:8]
    return f"The folder holds {', '.join(held) or 'nothing'}; save model and tokenizer there, or name another"


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()
