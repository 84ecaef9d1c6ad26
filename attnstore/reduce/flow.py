"""This file sums the attention from each class of tokens to each other class."""

import numpy as np
from numpy.typing import NDArray

from attnstore.errors import BadInput
from attnstore.reduce.axes import FloatArray, Frame
from attnstore.reduce.blocks import blocks, check_map
from attnstore.reduce.columns import Columns, column


def flow_facts(weights: FloatArray, frame: Frame, rows: Columns) -> dict[str, NDArray[np.generic]]:
    """One row for every pair of a class of queries and a class of keys that occur, in the order of their names.

    `query_class`, `key_class`: strings [row]; `n_queries`, `n_keys` int32 [row]: tokens of the class; `uniform`
    float64 [row]: the mass if every query weighed the keys that it sees alike (in a causal frame those up to itself);
    `mass` float64 [head, row]: the weight from all queries of one class to all keys of the other, summed. Divided by
    n_queries it is the mean weight that a query gives the class; every weight is in exactly one row.

    `rows`: `class` [token], strings, of the queries; in a cross map also `key_class` [token] of the keys. BadInput
    where one is absent or does not fit the frame, or a token has no class.
    """
    check_map(weights, frame, n_axes=3)
    query_names, query_index = _classes(rows, "class", len(frame.queries))
    key_names, key_index = query_names, query_index
    if not frame.is_self:
        key_names, key_index = _classes(rows, "key_class", len(frame.keys))
    of_query, of_key = (
        np.eye(len(names))[index] for names, index in ((query_names, query_index), (key_names, key_index))
    )
    mass = np.zeros((weights.shape[0], len(query_names), len(key_names)))
    for heads, queries, block in blocks(weights):
        to_class = block @ of_key.astype(block.dtype)
        mass[heads] += of_query[queries].T @ to_class
    n_queries, n_keys = of_query.sum(axis=0), of_key.sum(axis=0)
    # Of the keys that a query sees, how many are of each class: [query or 1, class].
    seen = np.cumsum(of_key, axis=0) if frame.causal else n_keys[None]
    uniform = of_query.T @ np.broadcast_to(seen / seen.sum(axis=1, keepdims=True), (len(of_query), len(key_names)))
    return {
        "query_class": np.repeat(query_names, len(key_names)),
        "key_class": np.tile(key_names, len(query_names)),
        "n_queries": np.repeat(n_queries, len(key_names)).astype(np.int32),
        "n_keys": np.tile(n_keys, len(query_names)).astype(np.int32),
        "uniform": uniform.ravel(),
        "mass": mass.reshape(len(mass), -1),
    }


def _classes(rows: Columns, name: str, length: int) -> tuple[NDArray[np.object_], NDArray[np.intp]]:
    """The names of the classes that occur, sorted, and the place of each token's class among them."""
    given = column(rows, name, length).tolist()
    for token, value in enumerate(given):
        if not isinstance(value, str):
            raise BadInput("summing attention by class", f"{name} of token {token} = {value!r}", "a string")
    names = sorted(set(given))
    place = {value: index for index, value in enumerate(names)}
    return np.array(names, object), np.array([place[value] for value in given], np.intp)
