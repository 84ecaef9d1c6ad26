"""This file tests correlations over heads against SciPy and against heads that are written out as often as drawn."""

import numpy as np
import pytest

from attnstore.reduce.correlations import correlation, draws, ranks_where_drawn, spearman

stats = pytest.importorskip("scipy.stats")

ONCE = np.ones((1, 12), np.int64)


def numbers(seed: int, n: int = 12) -> tuple[np.ndarray[tuple[int], np.dtype[np.float64]], ...]:
    """Two numbers of which the second has ties."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    return x, np.round(x + rng.normal(size=n))


def test_ranks_of_four_heads_of_which_one_is_drawn_twice_are_those_counted_by_hand() -> None:
    values = np.array([5.0, 1.0, 3.0, 3.0])
    times = np.array([[1, 1, 1, 1], [2, 0, 1, 1], [0, 3, 0, 0]])
    found = ranks_where_drawn(values, times)
    assert found[0].tolist() == [4, 1, 2.5, 2.5]
    assert found[1][[0, 2, 3]].tolist() == [3.5, 1.5, 1.5]
    assert found[2][1] == 2


@pytest.mark.parametrize("seed", range(5))
def test_coefficients_are_scipys(seed: int) -> None:
    x, y = numbers(seed)
    assert spearman(x, y, ONCE)[0] == pytest.approx(stats.spearmanr(x, y).statistic)
    assert correlation(x, y, ONCE)[0] == pytest.approx(stats.pearsonr(x, y).statistic)


def test_a_draw_is_as_good_as_its_heads_written_out() -> None:
    x, y = numbers(7)
    times = draws(12, 40, seed=3)
    for row, rank, plain in zip(times, spearman(x, y, times), correlation(x, y, times), strict=True):
        heads = np.repeat(np.arange(12), row)
        assert len(heads) == 12
        assert rank == pytest.approx(stats.spearmanr(x[heads], y[heads]).statistic)
        assert plain == pytest.approx(stats.pearsonr(x[heads], y[heads]).statistic)


def test_draws_are_with_replacement_and_equal_for_equal_seeds() -> None:
    times = draws(50, 2000, seed=1)
    assert (times.sum(axis=1) == 50).all()
    assert (times == draws(50, 2000, seed=1)).all()
    assert (times != draws(50, 2000, seed=2)).any()
    # The share of draws without a given head is (1 - 1/50)^50.
    assert (times == 0).mean() == pytest.approx(0.98**50, abs=0.01)


def test_a_constant_goes_with_nothing() -> None:
    x, _ = numbers(1)
    for coefficient in (spearman, correlation):
        assert np.isnan(coefficient(x, np.full(12, 0.1), ONCE)).all()
    one_head = np.zeros((1, 12), np.int64)
    one_head[0, 3] = 12
    assert np.isnan(spearman(x, x, one_head)).all()


def test_opposite_orders_correlate_at_minus_one_whatever_the_distances() -> None:
    x = np.exp(np.arange(12.0))
    assert spearman(x, -x, ONCE) == pytest.approx([-1])
    assert spearman(x, -np.arange(12.0), ONCE) == pytest.approx([-1])
    assert correlation(x, -np.arange(12.0), ONCE)[0] > -0.9
