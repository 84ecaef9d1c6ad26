"""This file follows attention through the layers of a model (Abnar and Zuidema 2020)."""

import numpy as np
from numpy.typing import NDArray

from attnstore.errors import BadInput
from attnstore.reduce.axes import FloatArray


def rollout(maps: FloatArray, residual: float = 0.5) -> NDArray[np.float64]:
    """How much of each input token reaches each output token: [query, key], rows sum to 1 where those of `maps` do.

    `maps` [layer, query, key], one map per layer (such as the mean over heads). Each becomes
    (1 - residual) * map + residual * identity, and later layers multiply from the left. BadInput for maps that
    are not square or a `residual` outside 0 to 1.
    """
    check_maps(maps, residual, "rolling out attention")
    reached = np.eye(maps.shape[1])
    for layer in maps:
        reached = (1 - residual) * (layer.astype(np.float64) @ reached) + residual * reached
    return reached


def check_maps(maps: FloatArray, residual: float, doing: str) -> None:
    """Raise BadInput unless `maps` are [layer, token, token] and 0 <= residual <= 1."""
    if maps.ndim != 3 or maps.shape[1] != maps.shape[2]:
        raise BadInput(doing, f"maps of shape {list(maps.shape)}", "[layer, token, token]")
    if not 0 <= residual <= 1:
        raise BadInput(doing, f"residual = {residual!r}", "0 <= residual <= 1")
