"""This file says what is known of a model: its attention kinds, sizes and origin."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from attnstore.text.example import Side

Takes = Literal["text", "pixels"]

SUM_ONE = "one"
"""Every row of a map sums to 1 over its real keys."""


@dataclass(frozen=True, slots=True)
class KindFacts:
    """One attention kind: `layers` maps [head, query, key] per example, `heads` query heads in each.

    `kv_heads` is smaller than `heads` where query heads share keys and values (head // (heads // kv_heads) is the
    shared one); it equals `heads` where layers share differently. `queries` and `keys` name the side whose tokens lie
    along that axis. `groups` gives each layer's group of shared parameters; empty where every layer has its own.
    """

    layers: int
    heads: int
    kv_heads: int
    queries: Side
    keys: Side
    causal: bool
    groups: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What is known of a model.

    `revision` is the resolved commit of a hub id, "" for a folder; `files` holds the sha256 of a folder's
    configuration, weights and tokenizer files by name. `max_length` counts positions with special tokens, None
    where nothing bounds them. `capture` names the road on which maps are taken (interface, outputs or modules; ""
    from `describe`), `row_sums` is "one" or the declared exception, in words.
    """

    name: str
    revision: str
    files: Mapping[str, str]
    class_name: str
    model_type: str
    kinds: Mapping[str, KindFacts]
    max_length: int | None
    capture: str
    dtype: str
    row_sums: str
    takes: Takes = "text"
