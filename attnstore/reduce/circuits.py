"""This file measures the weights of heads: what each asks for, what it moves, and what it hands to later layers.

A vector stands to the left of a matrix: a head asks by x W_Q (y W_K)^T and moves y W_V W_O. Biases belong to neither.
Products are never made at full size: W = Q R with orthonormal columns of Q, and only the small R are multiplied.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

RELATIONS = ("q", "k", "v")
"""Through which of its matrices a later head reads what an earlier one wrote."""


def weight_numbers(query: Floats | None, key: Floats | None, value: Floats, output: Floats) -> dict[str, Floats]:
    """Norms, effective ranks and copying of the heads of a layer, each [head]; NaN where undefined.

    `query`, `key`, `value` [head, input, item], `output` [head, item, hidden]. Without query or key all that needs
    them is NaN; so are trace and copying score where the input is not as wide as what the head writes to.
    """
    given = {"w_query": query, "w_key": key, "w_value": value, "w_output": output.swapaxes(1, 2)}
    missing = np.full((len(value), 1, value.shape[2]), np.nan)
    cores = {name: missing if own is None else core(own) for name, own in given.items()}
    products = {"qk": ("w_query", "w_key"), "ov": ("w_value", "w_output")}
    found: dict[str, Floats] = {}
    for name, (left, right) in products.items():
        cores[name] = cores[left] @ cores[right].swapaxes(1, 2)
    for name, own in cores.items():
        sigma = _singular(own)
        found |= {f"{name}_norm": np.sqrt((sigma**2).sum(axis=1)), f"{name}_spectral": sigma[:, 0]}
        if name in products:
            found[f"{name}_rank"] = _ratio(sigma.sum(axis=1) ** 2, (sigma**2).sum(axis=1))
    found["ov_trace"] = found["copying"] = np.full(len(value), np.nan)
    if value.shape[1] == output.shape[2]:
        # W_O W_V has the eigenvalues of W_V W_O that are not 0.
        values = np.linalg.eigvals(output @ value)
        found["ov_trace"] = values.real.sum(axis=1)
        found["copying"] = _ratio(found["ov_trace"], np.abs(values).sum(axis=1))
    share = found["w_output_norm"]
    return found | {"w_output_share": _ratio(share, np.full(len(share), share.sum()))}


def overlaps(output: Floats) -> dict[str, NDArray[np.generic]]:
    """How far two heads of a layer write in the same directions, for each pair head_a < head_b [pair].

    `output` [head, item, hidden]. The principal angles between the row spaces of two W_O give the cosines of the
    smallest, of the mean and of the largest angle, and `overlap`, the mean of all squared cosines: 1 for one space
    within the other, `random` = larger rank / hidden on average for spaces turned at random. NaN beside a W_O of zeros.
    """
    _, sizes, rows = np.linalg.svd(output, full_matrices=False)
    tiny = np.finfo(np.float64).eps * max(output.shape[1:])
    there = (sizes > tiny * sizes[:, :1]) & (sizes > 0)
    basis = np.where(there[..., None], rows, 0)
    a, b = np.triu_indices(len(output), 1)
    ranks = there.sum(axis=1)
    n, larger = np.minimum(ranks[a], ranks[b]), np.maximum(ranks[a], ranks[b])
    cosines = _singular(basis[a] @ basis[b].swapaxes(1, 2)).clip(0, 1)
    counted = np.arange(cosines.shape[1]) < n[:, None]
    last = np.take_along_axis(cosines, np.maximum(n - 1, 0)[:, None], axis=1)[:, 0]
    return {
        "head_a": a,
        "head_b": b,
        "cosine_smallest": np.where(n > 0, cosines[:, 0], np.nan),
        "cosine_mean": np.cos(_ratio(np.where(counted, np.arccos(cosines), 0).sum(axis=1), n)),
        "cosine_largest": np.where(n > 0, last, np.nan),
        "overlap": _ratio(np.where(counted, cosines**2, 0).sum(axis=1), n),
        "random": np.where(n > 0, larger / output.shape[2], np.nan),
    }


def writes(value: Floats, output: Floats) -> Floats:
    """[head, item, hidden] that turned back is W_V W_O, divided by its Frobenius norm; NaN for zeros."""
    return _scaled(core(value) @ output)


def reads(query: Floats | None, key: Floats | None, value: Floats, output: Floats) -> dict[str, Floats]:
    """By relation [head, input, item]: W_Q W_K^T (q), its transpose (k), W_V W_O (v), each of Frobenius norm 1.

    Their columns are turned, which changes no norm of a product with them. Only v without query or key. NaN for zeros.
    """
    found = {"v": value @ core(output.swapaxes(1, 2)).swapaxes(1, 2)}
    if query is not None and key is not None:
        found |= {"q": query @ core(key).swapaxes(1, 2), "k": key @ core(query).swapaxes(1, 2)}
    return {name: _scaled(found[name]) for name in RELATIONS if name in found}


def composition(written: Floats, read: Floats) -> Floats:
    """How much a later layer's heads read of what an earlier layer's write [earlier head, later head], 0-1.

    |W_OV W| / (|W_OV| |W|) in Frobenius norms (Elhage et al. 2021), of what `writes` and `reads` gave. Its mean square
    is exactly 1 / hidden where one of the two is turned at random, whatever its singular values are.
    """
    (a, wrote, hidden), (b, _, reading) = written.shape, read.shape
    product = written.reshape(a * wrote, hidden) @ read.transpose(1, 0, 2).reshape(hidden, b * reading)
    scores: Floats = np.sqrt((product.reshape(a, wrote, b, reading) ** 2).sum(axis=(1, 3)))
    return scores


def core(matrix: Floats) -> Floats:
    """R of W = Q R [head, item, item], whose singular values are those of W [head, input, item]."""
    return np.asarray(np.linalg.qr(matrix, mode="r"), np.float64)


def _singular(matrix: Floats) -> Floats:
    """Singular values [matrix, value], largest first; NaN for a matrix that is not there."""
    there = np.isfinite(matrix[:, :1, :1])
    sizes = np.linalg.svd(np.where(there, matrix, 0), compute_uv=False)
    return np.where(there[..., 0], sizes, np.nan)


def _scaled(matrix: Floats) -> Floats:
    length = np.sqrt((matrix**2).sum(axis=(1, 2), keepdims=True))
    return _ratio(matrix, np.broadcast_to(length, matrix.shape))


def _ratio(part: Floats, whole: NDArray[np.floating] | NDArray[np.integer]) -> Floats:
    """NaN where there is nothing to divide by."""
    found: Floats = np.divide(part, whole, out=np.full(part.shape, np.nan), where=whole > 0)
    return found
