"""This file defines what may be declared about a family of models that the general rules do not fit."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from attnstore.capture.facts import SUM_ONE


def _no_groups(config: Any) -> tuple[int, ...]:
    return ()


@dataclass(frozen=True, slots=True)
class Family:
    """Declared exceptions for the configurations whose `model_type` is in `model_types`.

    `row_sums`: "one", or why rows sum to less. `axes`: how the attention module's own output is permuted to
    [batch, head, query, key], for the modules road. `causal`: None leaves it to the model's structure.
    `groups`: the group of shared parameters of each layer, () where none are shared. `layers`: maps per forward
    pass where that is not the configured number of layers; `heads`: maps per layer, likewise. `token_types`: how many
    it tells apart where the configuration does not say. `refused`: why the maps cannot be had, in words; "" where they
    can.
    """

    model_types: tuple[str, ...]
    row_sums: str = SUM_ONE
    axes: tuple[int, int, int, int] = (0, 1, 2, 3)
    causal: bool | None = None
    groups: Callable[[Any], tuple[int, ...]] = _no_groups
    layers: Callable[[Any], int] | None = None
    heads: Callable[[Any], int] | None = None
    token_types: int | None = None
    refused: str = ""
