"""This file tests the comparison of groups by ranks against SciPy, scikit-learn and sums by hand."""

import numpy as np
import pytest

from attnstore.reduce.ranks import auroc, eta_squared, false_discovery, kruskal, permuted, ranks

stats = pytest.importorskip("scipy.stats")
metrics = pytest.importorskip("sklearn.metrics")

RNG = np.random.default_rng(5)
LABELS = np.array(list("aabbbcccccab"))
MEMBER = np.array([name == LABELS for name in "abc"])
# Rounded, so that there are ties.
VALUES = np.round(RNG.normal(size=(6, 12)) + MEMBER[1] * np.arange(6)[:, None], 1)


def test_ranks_and_h_and_areas_are_scipy_s_and_scikit_learn_s():
    ranked = ranks(VALUES)
    np.testing.assert_array_equal(ranked, stats.rankdata(VALUES, axis=1))
    groups = [VALUES[:, own] for own in MEMBER]
    expected = [stats.kruskal(*(group[head] for group in groups)).statistic for head in range(6)]
    np.testing.assert_allclose(kruskal(ranked, MEMBER), expected, rtol=1e-12)
    areas = [[metrics.roc_auc_score(own, values) for own in MEMBER] for values in VALUES]
    np.testing.assert_allclose(auroc(ranked, MEMBER), areas, rtol=1e-12)


def test_eta_squared_of_six_numbers():
    # Means 2 and 5 about 3.5: 6 * 1.5 ** 2 between, and 2 + 2 within.
    member = np.array([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]], bool)
    assert eta_squared(np.array([1.0, 2, 3, 4, 5, 6]), member) == pytest.approx(13.5 / 17.5)


def test_false_discoveries_are_scipy_s_and_leave_out_what_is_no_test():
    p = RNG.random(30) ** 2
    np.testing.assert_allclose(false_discovery(p), stats.false_discovery_control(p), rtol=1e-12)
    with_gap = false_discovery(np.array([0.01, np.nan, 0.04]))
    assert with_gap == pytest.approx([0.02, np.nan, 0.04], nan_ok=True)
    assert false_discovery(np.array([np.nan])) == pytest.approx([np.nan], nan_ok=True)


def test_p_is_that_of_every_order_of_the_labels_but_for_chance():
    # Two groups of two: of the 6 orders of 1 2 | 3 4, two have as large an H: p is 1 / 3.
    member = np.array([[1, 1, 0, 0], [0, 0, 1, 1]], bool)
    p = permuted(np.array([1.0, 2, 3, 4]), member, np.random.default_rng(0), 4000)
    assert p == pytest.approx(1 / 3, abs=0.03)


def test_p_agrees_with_scipy_s_permutation_test():
    ranked = ranks(VALUES)
    found = permuted(ranked, MEMBER, np.random.default_rng(0), 4000)
    for head in (0, 5):
        own = [VALUES[head][group] for group in MEMBER]
        expected = stats.permutation_test(
            own, lambda *groups: stats.kruskal(*groups).statistic, n_resamples=400,
            alternative="greater", rng=np.random.default_rng(1),
        ).pvalue  # fmt: skip
        assert found[head] == pytest.approx(expected, abs=0.08)


def test_a_constant_is_no_test_and_a_group_of_all_has_no_area():
    alike = np.full((1, 12), 0.1)
    ranked = ranks(alike)
    assert np.isnan([kruskal(ranked, MEMBER), eta_squared(alike, MEMBER)]).all()
    assert np.isnan(permuted(ranked, MEMBER, np.random.default_rng(0), 5)).all()
    assert np.isnan(auroc(ranked, np.array([[True] * 12, [False] * 12]))).all()
    np.testing.assert_array_equal(auroc(ranked, MEMBER), np.full((1, 3), 0.5))
