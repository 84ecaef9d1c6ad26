"""Tests of the paired bootstrap: its draws against DuckDB's MD5, its percentiles against plain sums."""

import duckdb
import numpy as np
import pytest

from attnstore.reduce.bootstrap import hashed_draws, paired_interval


def test_draws_are_those_of_the_questions_that_draw_in_sql() -> None:
    text = """
        select r.range, md5_number_lower(3 || '/' || r.range || '/' || p.range) % 7
        from range(20) as r, range(1, 8) as p
    """
    expected = np.zeros((20, 7), np.int64)
    for resample, item in duckdb.connect().execute(text).fetchall():
        expected[resample, int(item)] += 1
    assert np.array_equal(hashed_draws(7, 20, 3), expected)


def test_every_draw_has_as_many_items_as_there_are_and_seeds_differ() -> None:
    times = hashed_draws(5, 40, 0)
    assert (times.sum(axis=1) == 5).all()
    assert np.array_equal(times[:10], hashed_draws(5, 10, 0))
    assert not np.array_equal(times, hashed_draws(5, 40, 1))
    assert hashed_draws(5, 0, 0).shape == (0, 5)
    assert hashed_draws(0, 3, 0).shape == (3, 0)


def test_an_interval_is_the_percentiles_of_the_differences_of_two_means() -> None:
    times = hashed_draws(6, 200, 1)
    totals, counts = np.array([[1, 0, 1, 1, 4, 0], [0, 0, 1, 2, 1, 0]]), np.array([[1, 1, 2, 2, 4, 0]] * 2)
    found = []
    for own in times:
        drawn = np.repeat(np.arange(6), own)
        if counts[0, drawn].sum():
            found.append((totals[0, drawn].sum() - totals[1, drawn].sum()) / counts[0, drawn].sum())
    expected = tuple(np.quantile(found, (0.025, 0.975)))
    assert paired_interval(times.astype(float), totals, counts) == pytest.approx(expected)


def test_draws_without_an_example_that_adds_something_do_not_count() -> None:
    times = np.array([[0, 2], [1, 1], [2, 0]], float)
    totals, counts = np.array([[3.0, 0], [1, 0]]), np.array([[1.0, 0], [1, 0]])
    assert paired_interval(times, totals, counts) == (2, 2)
    assert paired_interval(times[:1], totals, counts) is None
    assert paired_interval(times[:0], totals, counts) is None
