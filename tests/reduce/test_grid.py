"""This file tests how attention on a grid of patches is measured."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnstore.errors import BadInput
from attnstore.reduce import blocks
from attnstore.reduce.axes import Frame
from attnstore.reduce.grid import grid_facts, grid_offset_facts


def placed(rows, cols, patch=(1, 1), prefix=1):
    """The places of rows * cols patches after `prefix` tokens."""
    row, col = np.divmod(np.arange(rows * cols), cols)
    height, width = (np.full(rows * cols, size) for size in patch)
    return {"token": np.arange(rows * cols) + prefix, "row": row, "col": col, "height": height, "width": width}


def frame_of(axis_of, length, prefix=1):
    axis = axis_of(" ".join(["C"] * prefix + [str(index) for index in range(length - prefix)]))
    return Frame(axis, axis)


def means(facts, name="distance_sum"):
    return (facts[name] / facts["n_queries"]).tolist()


def test_fixture_uniform_attention_over_2_by_2_patches_of_16_pixels(axis_of):
    facts = grid_facts(np.full((1, 5, 5), 0.2), frame_of(axis_of, 5), placed(2, 2, (16, 16)))
    assert facts["n_queries"].tolist() == [4]
    assert means(facts) == pytest.approx([10.9254834], abs=5e-8)
    assert means(facts, "distance_renormalised_sum") == pytest.approx([13.6568542], abs=5e-8)


def test_grids_and_patches_that_are_not_square_are_counted_row_by_row(axis_of):
    # 2 rows of 3 patches of 2 x 1 pixels; all look at patch 2, the last of the first row: 2, 1, 0 pixels from the
    # first row, and (2, 2), (2, 1), (2, 0) down and right from the second.
    weights = np.zeros((1, 6, 6))
    weights[:, :, 2] = 1
    facts = grid_facts(weights, frame_of(axis_of, 6, 0), placed(2, 3, (2, 1), prefix=0))
    assert facts["distance_sum"] == pytest.approx([2 + 1 + 0 + 8**0.5 + 5**0.5 + 2])


def test_the_order_of_the_places_does_not_matter(axis_of, random_map):
    weights, frame, rows = random_map(2, 7, 7), frame_of(axis_of, 7), placed(2, 3, (4, 8))
    turned = {name: column[::-1] for name, column in rows.items()}
    expected = grid_facts(weights, frame, rows)
    for name, column in grid_facts(weights, frame, turned).items():
        np.testing.assert_array_equal(column, expected[name])


def test_patches_that_look_at_the_prefix_alone_are_at_no_distance(axis_of):
    weights = np.zeros((2, 3, 3))
    weights[:, :, 0] = 1
    facts = grid_facts(weights, frame_of(axis_of, 3), placed(1, 2))
    assert facts["distance_sum"].tolist() == facts["distance_renormalised_sum"].tolist() == [0, 0]


def test_a_text_has_no_grid(axis_of, random_map):
    nothing = {name: column[:0] for name, column in placed(1, 1).items()}
    frame = frame_of(axis_of, 4)
    assert [column.tolist() for column in grid_facts(random_map(1, 4, 4), frame, nothing).values()] == [[0]] * 3
    assert len(grid_offset_facts(random_map(1, 4, 4), frame, nothing)["dy"]) == 0


def test_a_cross_map_has_no_distances_on_one_grid(axis_of, random_map):
    frame = Frame(axis_of("C 0 1"), axis_of("C 0 1"))
    assert np.isnan(grid_facts(random_map(1, 3, 3), frame, placed(1, 2))["distance_sum"]).all()
    assert len(grid_offset_facts(random_map(1, 3, 3), frame, placed(1, 2))["dy"]) == 0


@pytest.mark.parametrize("cells", [1 << 18, 20])
@given(seed=st.integers(0, 99), rows=st.integers(1, 3), cols=st.integers(1, 3), prefix=st.integers(0, 2))
def test_facts_are_what_plain_loops_give(cells, seed, rows, cols, prefix, axis_of):
    n = prefix + rows * cols
    weights = np.random.default_rng(seed).dirichlet(np.ones(n), (2, n))
    frame, places = frame_of(axis_of, n, prefix), placed(rows, cols, (4, 8), prefix)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "CELLS", cells)
        facts = grid_facts(weights, frame, places)
        steps = grid_offset_facts(weights, frame, places, reach=1)
    spots = [(row, col) for row in range(rows) for col in range(cols)]
    for head in (0, 1):
        total = renormalised = 0.0
        mass: dict[tuple[int, int], list[float]] = {}
        for query, (row, col) in enumerate(spots, prefix):
            own = weights[head, query, prefix:]
            far = [np.hypot(4 * (other - row), 8 * (across - col)) for other, across in spots]
            total += float(own @ far)
            renormalised += float(own @ far / own.sum())
            for (other, across), weight in zip(spots, own, strict=True):
                if max(abs(other - row), abs(across - col)) <= 1:
                    mass.setdefault((other - row, across - col), []).append(weight)
        assert facts["distance_sum"][head] == pytest.approx(total)
        assert facts["distance_renormalised_sum"][head] == pytest.approx(renormalised)
        found = [*zip(steps["dy"].tolist(), steps["dx"].tolist(), strict=True)]
        assert found == sorted(mass)
        assert steps["n_queries"].tolist() == [len(mass[step]) for step in found]
        assert steps["mass"][head] == pytest.approx([sum(mass[step]) for step in found])


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"token": np.array([1, 9])}, "token"),
        ({"row": np.array([0])}, "row"),
        ({"height": np.array([0, 0])}, "height"),
    ],
)
def test_places_that_do_not_fit_are_refused(changed, message, axis_of, random_map):
    with pytest.raises(BadInput, match=message):
        grid_facts(random_map(1, 3, 3), frame_of(axis_of, 3), {**placed(1, 2), **changed})


def test_two_tokens_at_one_place_and_a_negative_reach_are_refused(axis_of, random_map):
    frame, rows = frame_of(axis_of, 3), placed(1, 2)
    with pytest.raises(BadInput, match="two tokens at one place"):
        grid_offset_facts(random_map(1, 3, 3), frame, {**rows, "col": np.array([0, 0])})
    with pytest.raises(BadInput, match="0 or more"):
        grid_offset_facts(random_map(1, 3, 3), frame, rows, reach=-1)


def test_a_reach_beyond_the_grid_is_that_of_the_grid(axis_of, random_map):
    weights, frame, rows = random_map(2, 7, 7), frame_of(axis_of, 7), placed(2, 3, (4, 8))
    whole, beyond = (grid_offset_facts(weights, frame, rows, reach=reach) for reach in (2, 10**6))
    for name, column in whole.items():
        assert np.array_equal(beyond[name], column)
