"""This file measures the attention between every word and its governor."""

import numpy as np
from numpy.typing import NDArray

from attnstore.reduce.axes import FloatArray, Frame
from attnstore.reduce.columns import Columns, column, indices
from attnstore.reduce.word_cells import word_cells
from attnstore.reduce.words import PieceMode


def governor_facts(
    weights: FloatArray, frame: Frame, rows: Columns, *, pieces: PieceMode = "mean"
) -> dict[str, NDArray[np.generic]]:
    """`word` int32 [row], and the weights between it and its governor, float32 [head, row], 0-1.

    `to_governor` is the weight in the word map from the word (query) to its governor (key), `from_governor` that
    from the governor to the word (the pairs of Clark et al. 2019, section 4.2; Kovaleva et al. 2019, section 4.4).
    NaN where one of the two has no tokens, and throughout in a cross map.

    `rows`: `word`, `governor` [row], only words that have a governor. BadInput for a word that the frame does not
    have, such as -1 for a root.
    """
    word = column(rows, "word")
    governor = column(rows, "governor", len(word))
    if frame.is_self:
        word, governor = (indices(rows, name, frame.queries.n_words) for name in ("word", "governor"))
    queries, keys = np.concatenate([word, governor]), np.concatenate([governor, word])
    to_governor, from_governor = np.split(word_cells(weights, frame, queries, keys, pieces=pieces), 2, axis=1)
    return {"word": word.astype(np.int32), "to_governor": to_governor, "from_governor": from_governor}
