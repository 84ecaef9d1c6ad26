"""This file computes all facts of one map in one go, which is what ingest calls per example, kind and layer."""

from dataclasses import dataclass

from attnstore.reduce.axes import FloatArray, Frame
from attnstore.reduce.head_facts import HeadFacts, sum_rows
from attnstore.reduce.rows import Drop, row_statistics
from attnstore.reduce.token_facts import TokenFacts, token_columns
from attnstore.reduce.word_facts import WordFacts, word_facts
from attnstore.reduce.words import PieceMode


@dataclass(frozen=True, slots=True)
class Facts:
    """Columns by name: `tokens` each [head, query], `words` each [head, word], `heads` each [head]."""

    tokens: TokenFacts
    words: WordFacts
    heads: HeadFacts


def facts(
    weights: FloatArray, frame: Frame, *, eps: float = 1e-4, drop: Drop = "sep", pieces: PieceMode = "mean"
) -> Facts:
    """The facts of `weights` [head, query, key]: what `token_facts`, `word_facts` and `head_facts` return.

    Row maxima and entropies are computed once for tokens and heads. The memory needed beyond `weights` and the
    result is a few blocks (see `reduce/blocks.py`), whatever the size of the map. BadInput for weights that do
    not fit the frame, are negative or are not finite.
    """
    rows = row_statistics(weights, frame, eps=eps, drop=drop)
    return Facts(
        tokens=token_columns(rows),
        words=word_facts(weights, frame, pieces=pieces),
        heads=sum_rows(weights, frame, rows, drop=drop),
    )
