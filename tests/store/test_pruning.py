"""Tests of what a filter leaves to be read."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from attnstore.store.pruning import GROUP, Pruning, columns_of

HEADS = [(kind, layer, head) for kind in ("encoder", "decoder") for layer in range(2) for head in range(3)]
EXAMPLES = np.array([*range(0, 3 * GROUP, 2), 10_000])
PRUNING = Pruning(HEADS, EXAMPLES)

kind, layer, head, example, query, weight = (
    pc.field(name) for name in ("kind", "layer", "head", "example", "query", "weight")
)


def _in(field: pc.Expression, values: list[int], kind: pa.DataType) -> pc.Expression:
    """What DuckDB makes of IN."""
    null = pa.scalar(None, pa.bool_())
    return pc.if_else(field.is_valid(), pc.is_in(field, pa.array(values, kind)), null)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ((kind == "encoder") & (layer == 1), [("encoder", 1, h) for h in range(3)]),
        ((layer >= 1) & (head < 1), [("encoder", 1, 0), ("decoder", 1, 0)]),
        (_in(head, [2, 7], pa.int16()) & (layer == 0), [("encoder", 0, 2), ("decoder", 0, 2)]),
        ((kind == "encoder") & ((layer == 0) & (query < 3) | (head == 2) & (layer == 1)), None),
        (kind == "cross", []),
        (example == 4, HEADS),
        (weight > 0.5, HEADS),
    ],
)
def test_only_heads_that_may_match_are_left(
    condition: pc.Expression, expected: list[tuple[str, int, int]] | None
) -> None:
    if expected is None:
        expected = [("encoder", 0, 0), ("encoder", 0, 1), ("encoder", 0, 2), ("encoder", 1, 2)]
    assert list(PRUNING.heads(condition)) == expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (example == 4, [4]),
        (example == 5, []),
        (_in(example, [0, 2 * GROUP, 10_000], pa.int32()), [0, 2 * GROUP, 10_000]),
        ((example >= 2 * GROUP - 2) & (example <= 2 * GROUP + 2), [2 * GROUP - 2, 2 * GROUP, 2 * GROUP + 2]),
        ((example == 8) & (layer == 1), [8]),
        ((example == 8) | (query == 0), EXAMPLES.tolist()),
        (example > 10_000, []),
    ],
)
def test_only_examples_that_may_match_are_left(condition: pc.Expression, expected: list[int]) -> None:
    found = PRUNING.examples(condition)
    assert found is not None
    assert found.tolist() == expected


def test_a_filter_without_examples_looks_at_none_of_them() -> None:
    assert PRUNING.examples(layer == 1) is None
    assert PRUNING.examples(None) is None
    assert PRUNING.heads(None) == tuple(HEADS)


@pytest.mark.parametrize(
    ("condition", "heads", "examples", "decided"),
    [
        (None, 12, None, True),
        ((layer == 1) & (head < 2), 4, None, True),
        ((layer == 0) & (head == 1) | (kind == "decoder") & (head == 2), 4, None, True),
        (example < 4, 12, 2, True),
        (_in(example, [0, 3, 10_000], pa.int32()), 12, 2, True),
        ((layer == 1) & (example == 4), 6, 1, True),
        ((layer == 1) | (example == 4), 12, len(EXAMPLES), False),
        ((layer == 1) & (query == 0), 6, None, False),
        (weight > 0.5, 12, None, False),
    ],
)
def test_a_filter_is_decided_where_all_that_is_left_passes_it(
    condition: pc.Expression | None, heads: int, examples: int | None, decided: bool
) -> None:
    found = PRUNING.chosen(condition)
    assert (len(found.heads), found.decided) == (heads, decided)
    assert (None if found.examples is None else len(found.examples)) == examples


def test_a_limit_leaves_what_both_name() -> None:
    found = PRUNING.chosen((layer == 1) & (example < 6)).only(frozenset([HEADS[3], HEADS[0]]), np.array([4, 6]))
    assert (found.heads, found.examples.tolist() if found.examples is not None else None) == ((HEADS[3],), [4])
    assert PRUNING.chosen(None).only(None, None).examples is None


def test_a_store_without_maps_or_examples_has_nothing_left() -> None:
    empty = Pruning([], np.zeros(0, np.int64))
    assert empty.heads(layer == 1) == ()
    found = empty.examples(example == 1)
    assert found is not None
    assert found.tolist() == []


def test_columns_of_a_filter_are_found() -> None:
    assert columns_of((layer == 1) & (query < 3), ["example", "layer", "query", "key"]) == {"layer", "query"}
    assert columns_of(None, ["layer"]) == set()
