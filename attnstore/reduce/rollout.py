"""This file follows attention through the layers of a model (Abnar and Zuidema 2020)."""

import numpy as np
from numpy.typing import NDArray

from attnstore.errors import BadInput
from attnstore.reduce.axes import FloatArray


def rollout(maps: FloatArray, residual: float | FloatArray = 0.5) -> NDArray[np.float64]:
    """How much of each input token reaches each output token: [query, key], rows sum to 1 where those of `maps` do.

    `maps` [layer, query, key], one map per layer (such as the mean over heads). Each becomes
    (1 - residual) * map + residual * identity, and later layers multiply from the left. `residual` may differ by layer
    and token, [layer, query]. BadInput for maps that are not square or a `residual` outside 0 to 1.
    """
    check_maps(maps, residual, "rolling out attention")
    reached = np.eye(maps.shape[1])
    for layer, kept in zip(maps, np.broadcast_to(residual, maps.shape[:2])[..., None], strict=True):
        reached = (1 - kept) * (layer.astype(np.float64) @ reached) + kept * reached
    return reached


def check_maps(maps: FloatArray, residual: float | FloatArray, doing: str) -> None:
    """Raise BadInput unless `maps` are [layer, token, token] and 0 <= residual <= 1, one or [layer, token]."""
    if maps.ndim != 3 or maps.shape[1] != maps.shape[2]:
        raise BadInput(doing, f"maps of shape {list(maps.shape)}", "[layer, token, token]")
    if np.shape(residual) not in ((), maps.shape[:2]):
        raise BadInput(doing, f"residual of shape {list(np.shape(residual))}", f"one, or {list(maps.shape[:2])}")
    if not (np.greater_equal(residual, 0) & np.less_equal(residual, 1)).all():
        raise BadInput(doing, f"residual = {residual!r}", "0 <= residual <= 1")
