"""This file brings maps of any length to one size, for classifiers of pictures."""

import numpy as np
from numpy.typing import NDArray

from attnstore.errors import BadInput
from attnstore.reduce.axes import FloatArray
from attnstore.reduce.blocks import work_dtype


def resample(weights: FloatArray, size: int) -> FloatArray:
    """`weights` [..., query, key] as [..., size, size]: every cell is the mean of the area that it covers.

    Cells that are covered in part count in part. The mean weight of a map stays as it is; its row sums do not.
    A map that is smaller than `size` is enlarged the same way. The result has the type of `weights`, but
    at least float32. BadInput for `size` below 1 or an empty map.
    """
    if size < 1 or weights.ndim < 2 or not all(weights.shape[-2:]):
        found = f"weights of shape {list(weights.shape)}, size = {size}"
        raise BadInput("resampling an attention map", found, "[..., query, key] and size >= 1")
    queries, keys = (_shares(length, size).astype(work_dtype(weights)) for length in weights.shape[-2:])
    resampled: FloatArray = queries @ (weights @ keys.T)
    return resampled


def _shares(length: int, size: int) -> NDArray[np.float64]:
    """Which share of each new cell each old one covers: [size, length], rows sum to 1."""
    # In units of 1 / (length * size) of the axis, where all edges are whole numbers.
    new, old = np.arange(size)[:, None] * length, np.arange(length) * size
    overlap = np.minimum(new + length, old + size) - np.maximum(new, old)
    shares: NDArray[np.float64] = np.maximum(overlap, 0) / length
    return shares
