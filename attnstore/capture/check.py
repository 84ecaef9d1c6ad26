"""This file compares captured maps with the library's own before a run trusts them."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attnstore.capture.captor import Captor, arguments
from attnstore.capture.encode import collate
from attnstore.capture.facts import SUM_ONE, KindFacts
from attnstore.capture.reference import library_maps
from attnstore.errors import NotCaptured
from attnstore.text.encoded import Encoded

TOLERANCE = 1e-6
"""Largest difference to the library's own float32 maps."""
_ROW_TOLERANCE = 1e-4
_PADDED_TOLERANCE = 1e-9
_EXAMPLES, _TOKENS = 2, 64


def check(captor: Captor, sample: Sequence[tuple[Encoded, Encoded | None]]) -> float:
    """`compare` on some examples, each a source and a target side (None for a model without a decoder)."""
    targets = [target for _, target in sample if target is not None]
    return compare(captor, collate([source for source, _ in sample], targets or None, captor.encoder.pad_id))


def compare(captor: Captor, inputs: Mapping[str, Tensor]) -> float:
    """The largest difference between captured maps and the library's own eager ones, over real tokens.

    Runs at most two examples of `inputs`, cut to 64 tokens, the second padded. Raises NotCaptured if the difference
    is over 1e-6, or a map is not finite, looks at padding, looks ahead in a causal kind, or has rows that do not sum
    to 1 (to at most 1 for families with a declared exception).
    """
    few = _cut(inputs)
    mine: dict[str, list[NDArray[np.float32]]] = {kind: [] for kind in captor.facts.kinds}
    captor.run(few, lambda kind, layer, weights: mine[kind].append(weights))
    theirs = library_maps(captor.model, arguments(captor.model, few), list(captor.facts.kinds))
    doing = f"checking the captured maps of {captor.facts.name} (road: {captor.facts.capture})"
    largest = 0.0
    for kind, facts in captor.facts.kinds.items():
        if len(theirs[kind]) != len(mine[kind]):
            raise NotCaptured(
                doing, f"{len(mine[kind])} {kind} layers", f"the library's own {len(theirs[kind])} layers"
            )
        shape = mine[kind][0].shape
        queries, keys = _real(few, facts.queries, shape[2]), _real(few, facts.keys, shape[3])
        for layer, (ours, own) in enumerate(zip(mine[kind], theirs[kind], strict=True)):
            where = f"{kind} layer {layer}"
            if ours.shape != own.shape:
                raise NotCaptured(doing, f"{where} has shape {ours.shape}", f"the library's {own.shape}")
            for example in range(len(ours)):
                rows, own_rows = ours[example][:, queries[example]], own[example][:, queries[example]]
                _sound(doing, where, rows, keys[example], facts, captor.facts.row_sums)
                largest = max(largest, float(np.abs(rows - own_rows).max(initial=0.0)))
    if not largest <= TOLERANCE:
        raise NotCaptured(
            doing,
            f"weights differ from the library's own by up to {largest:.2g}",
            f"at most {TOLERANCE:g}",
            "Do not trust this model's maps; declare its family in attnstore/capture/families",
        )
    return largest


def _sound(
    doing: str,
    where: str,
    rows: NDArray[np.float32],
    keys: NDArray[np.bool_],
    facts: KindFacts,
    row_sums: str,
) -> None:
    """Raises NotCaptured unless `rows` [head, query, key] of one example are attention over its real keys."""
    if not np.isfinite(rows).all():
        raise NotCaptured(doing, f"{where} holds values that are not finite", "weights between 0 and 1")
    if rows.min(initial=0.0) < 0.0:
        raise NotCaptured(doing, f"{where} holds negative weights", "weights between 0 and 1")
    seen = rows[..., keys]
    if rows[..., ~keys].max(initial=0.0) > _PADDED_TOLERANCE:
        raise NotCaptured(doing, f"{where} puts weight on padding", "none", "The attention mask is not honoured")
    if facts.causal and np.triu(seen, 1).any():
        raise NotCaptured(doing, f"{where} looks ahead", "a causal map", "The causal mask is not applied")
    sums = seen.sum(axis=-1, dtype=np.float64)
    off = float(np.abs(sums - 1.0).max(initial=0.0)) if row_sums == SUM_ONE else float((sums - 1.0).max(initial=0.0))
    if off > _ROW_TOLERANCE:
        raise NotCaptured(
            doing,
            f"rows of {where} sum to between {sums.min():.4g} and {sums.max():.4g}",
            f"sums of {row_sums}",
            "If the model means that, declare its family in attnstore/capture/families",
        )


def _cut(inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """At most two examples and 64 tokens; the second is shortened if nothing in it is padded."""
    if "pixel_values" in inputs:
        return {name: value[:_EXAMPLES] for name, value in inputs.items()}
    few = {name: value[:_EXAMPLES, :_TOKENS].clone() for name, value in inputs.items()}
    if len(few["input_ids"]) == 1:
        few = {name: value.repeat(2, 1) for name, value in few.items()}
    for ids, mask in (("input_ids", "attention_mask"), ("decoder_input_ids", "decoder_attention_mask")):
        if ids not in few:
            continue
        seen = few.setdefault(mask, torch.ones_like(few[ids]))
        tokens = int(seen[1].sum())
        if tokens == seen.shape[1] and tokens > 1:
            seen[1, tokens - max(1, tokens // 4) :] = 0
    return few


def _real(inputs: Mapping[str, Tensor], side: str, tokens: int) -> NDArray[np.bool_]:
    """Which tokens are real [example, token]."""
    mask = inputs.get("attention_mask" if side == "source" else "decoder_attention_mask")
    if mask is None:
        return np.ones((len(next(iter(inputs.values()))), tokens), dtype=np.bool_)
    return mask.cpu().numpy().astype(np.bool_)
