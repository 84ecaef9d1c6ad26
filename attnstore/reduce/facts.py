"""This file computes all facts of one map in one go, which is what ingest calls per example, kind and layer."""

from dataclasses import dataclass

from attnstore.format.compiled import is_compiling
from attnstore.reduce.axes import FloatArray, Frame
from attnstore.reduce.compiled_rows import compiled_rows
from attnstore.reduce.compiled_words import compiled_words
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


def compile_facts() -> None:
    """Compile what `facts` runs with `compiled`, where numba is installed: three seconds, once in a process.

    Left to the first map, the compiler's own frames would keep that map alive for a while.
    """
    if is_compiling():
        compiled_rows()
        compiled_words()


def facts(
    weights: FloatArray,
    frame: Frame,
    *,
    eps: float = 1e-4,
    drop: Drop = "sep",
    pieces: PieceMode = "mean",
    compiled: bool = False,
) -> Facts:
    """The facts of `weights` [head, query, key]: what `token_facts`, `word_facts` and `head_facts` return.

    Row maxima and entropies are computed once for tokens and heads. The memory needed beyond `weights` and the
    result is a few blocks (see `reduce/blocks.py`), whatever the size of the map. `compiled` is as in
    `row_statistics` and `word_facts`. BadInput for weights that do not fit the frame, are negative or are not finite.
    """
    rows = row_statistics(weights, frame, eps=eps, drop=drop, compiled=compiled)
    return Facts(
        tokens=token_columns(rows),
        words=word_facts(weights, frame, pieces=pieces, compiled=compiled),
        heads=sum_rows(weights, frame, rows, drop=drop),
    )
