"""This file computes where the weight of every query token goes: to itself, its neighbours, and special tokens."""

import numpy as np
from numpy.typing import NDArray

from attnstore.reduce.axes import FloatArray, Frame
from attnstore.reduce.blocks import check_map

TokenMasses = dict[str, NDArray[np.generic]]


def token_masses(weights: FloatArray, frame: Frame) -> TokenMasses:
    """The columns of TOKEN_MASSES, each float32 [head, query], 0-1, of `weights` [head, query, key].

    `self_mass`, `previous_mass`, `next_mass` are the weights to the token itself and to its neighbours, NaN where
    there is none and in cross maps; `cls_mass`, `sep_mass`, `punct_mass` the weight on all such keys together.
    """
    check_map(weights, frame, n_axes=3)
    heads, queries, _ = weights.shape
    found: TokenMasses = {}
    for name, shift in (("self_mass", 0), ("previous_mass", -1), ("next_mass", 1)):
        column = np.full((heads, queries), np.nan, np.float32)
        if frame.is_self and queries > abs(shift):
            has_neighbour = slice(max(-shift, 0), queries - max(shift, 0))
            column[:, has_neighbour] = np.diagonal(weights, shift, axis1=1, axis2=2)
        found[name] = column
    for name, keys in (("cls_mass", frame.keys.cls), ("sep_mass", frame.keys.sep), ("punct_mass", frame.keys.punct)):
        found[name] = weights[:, :, np.flatnonzero(keys)].sum(axis=2, dtype=np.float64).astype(np.float32)
    return found
