"""This file names sets of heads that are switched off together, and reads such names in a recipe."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from attnstore.capture.evidence.ablate import Head, Intervention
from attnstore.errors import BadInput
from attnstore.format.manifest import Kind
from attnstore.job.evidence.predictions import WHOLE

_HEAD = re.compile(r"(?:([a-z]+):)?(\d+)-(\d+)")


@dataclass(frozen=True, slots=True)
class HeadSet:
    """Some heads and what replaces their outputs. `text` names them: "zero 0-1 2-11", "none" where there are none."""

    intervention: Intervention
    heads: tuple[Head, ...]
    text: str

    @classmethod
    def of(cls, intervention: Intervention, heads: Iterable[Head], kinds: Mapping[str, Kind]) -> "HeadSet":
        """The set with its heads in order, the model's kinds first to last; equal sets have equal texts."""
        order = list(kinds)
        own = tuple(sorted(set(heads), key=lambda head: (order.index(head[0]), *head[1:])))
        text = " ".join([intervention, *(head_text(head, kinds) for head in own)]) if own else WHOLE
        return cls(intervention, own, text)

    def row(self, kinds: Mapping[str, Kind]) -> dict[str, Any]:
        """Its columns in the table head_sets."""
        own, layers = {kind for kind, _, _ in self.heads}, {(kind, layer) for kind, layer, _ in self.heads}
        return {
            "head_set": self.text,
            "intervention": self.intervention,
            "size": len(self.heads),
            "kind": self.heads[0][0] if len(own) == 1 else None,
            "layer": self.heads[0][1] if len(layers) == 1 else None,
            "head": self.heads[0][2] if len(self.heads) == 1 else None,
            "kinds": [kind for kind, _, _ in self.heads],
            "layers": [layer for _, layer, _ in self.heads],
            "heads": [head for _, _, head in self.heads],
            "param_groups": [(kinds[kind].param_groups or range(layer + 1))[layer] for kind, layer, _ in self.heads],
        }


def head_text(head: Head, kinds: Mapping[str, Kind]) -> str:
    """ "2-11", or "cross:2-11" for a model with several kinds of attention; from 0."""
    kind, layer, number = head
    return f"{layer}-{number}" if len(kinds) == 1 else f"{kind}:{layer}-{number}"


def read_heads(texts: Sequence[str], kinds: Mapping[str, Kind]) -> list[Head]:
    """The heads that a recipe names. BadInput for one that the model lacks, or that is named twice."""
    found: list[Head] = []
    for text in texts:
        doing, match = f"reading the head {text!r} in ablations.order", _HEAD.fullmatch(text)
        if match is None or (match[1] is None and len(kinds) > 1) or (match[1] or next(iter(kinds))) not in kinds:
            form = "2-11" if len(kinds) == 1 else f"{next(iter(kinds))}:2-11, one of {', '.join(kinds)}"
            raise BadInput(doing, "no head", f"layer and head from 0, such as {form}")
        kind, layer, head = match[1] or next(iter(kinds)), int(match[2]), int(match[3])
        if layer >= kinds[kind].layers or head >= kinds[kind].heads:
            most = f"{kinds[kind].layers - 1}-{kinds[kind].heads - 1}"
            raise BadInput(doing, f"layer {layer}, head {head}", f"one of this model, 0-0 to {most}")
        if (kind, layer, head) in found:
            raise BadInput(doing, "the same head again", "each head once")
        found.append((kind, layer, head))
    return found


def every_head(kinds: Mapping[str, Kind]) -> list[Head]:
    """All heads of the model, in order."""
    return [
        (kind, layer, head) for kind, own in kinds.items() for layer in range(own.layers) for head in range(own.heads)
    ]
