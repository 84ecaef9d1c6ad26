"""This file checks, for `attnstore doctor`, that a model can be loaded and its attention captured exactly."""

from attnstore.capture.encode import Encoder
from attnstore.job.model_source import ModelSource
from attnstore.job.recipe import Recipe
from attnstore.job.source import Prepared
from attnstore.text.example import Example

_TEXTS = ("The quick brown fox jumps over the lazy dog.", "It ran.")


def probe(model: str, device: str = "cpu") -> str:
    """One sentence on how the model's attention is captured, and how far it is from the library's own maps.

    BadInput or NotCaptured where the model cannot be used.
    """
    # Of this kind, which reads no file, a model without a tokenizer of texts can be checked too: what it reads is of no
    # matter here.
    value = {"corpus": {"kind": "repeated_random", "length": 2}, "model": {"name": model}}
    source = ModelSource(Recipe.build(value), device)
    two_sided = any(kind.queries == "target" for kind in source.facts.kinds.values())
    sample = [_prepared(source, text, text if two_sided else None) for text in _TEXTS]
    found = source.start(sample)
    kinds = ", ".join(f"{name} {kind.layers} x {kind.heads}" for name, kind in source.facts.kinds.items())
    return f"{kinds}; road: {found['capture']}; largest difference {found['largest_difference']:.2g}"


def _prepared(source: ModelSource, text: str, target: str | None) -> Prepared:
    encoder = source.encoder
    assert isinstance(encoder, Encoder), "a corpus of tokens has been refused by a model of images"
    encoded = encoder.encode_target(target) if target is not None else None
    return Prepared(Example(text, text, target=target), encoder.encode(text), encoded)
