"""This file tests the numbers of weights against hand-computed examples and against matrices at full size."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from attnstore.reduce.circuits import composition, core, overlaps, reads, weight_numbers, writes

Floats = NDArray[np.float64]


def random_head(seed: int, heads: int = 3, hidden: int = 9, items: int = 4) -> tuple[Floats, Floats, Floats, Floats]:
    """W_Q, W_K, W_V [head, hidden, item] and W_O [head, item, hidden]."""
    rng = np.random.default_rng(seed)
    query, key, value = rng.normal(size=(3, heads, hidden, items))
    return query, key, value, rng.normal(size=(heads, items, hidden))


def test_numbers_of_a_head_of_two_columns_are_those_computed_by_hand() -> None:
    query = np.array([[[3.0, 0.0], [0.0, 4.0]]])
    key = np.array([[[0.0, 2.0], [1.0, 0.0]]])
    value = np.array([[[1.0, 0.0], [0.0, 2.0]]])
    output = np.array([[[1.0, 1.0], [0.0, -1.0]]])
    found = {name: values.item() for name, values in weight_numbers(query, key, value, output).items()}
    # W_Q W_K^T = [[0, 3], [8, 0]] with singular values 8 and 3; W_V W_O = [[1, 1], [0, -2]] with eigenvalues 1 and -2,
    # Frobenius norm sqrt(6) and determinant -2: singular values s, t with s^2 + t^2 = 6, s t = 2, s + t = sqrt(10).
    expected = {
        "w_query_norm": 5,
        "w_query_spectral": 4,
        "w_key_norm": 5**0.5,
        "w_key_spectral": 2,
        "w_value_norm": 5**0.5,
        "w_value_spectral": 2,
        "w_output_norm": 3**0.5,
        "w_output_spectral": (1 + 5**0.5) / 2,
        "qk_norm": 73**0.5,
        "qk_spectral": 8,
        "qk_rank": 121 / 73,
        "ov_norm": 6**0.5,
        "ov_spectral": (10**0.5 + 2**0.5) / 2,
        "ov_rank": 10 / 6,
        "ov_trace": -1,
        "copying": -1 / 3,
        "w_output_share": 1,
    }
    assert found == pytest.approx(expected)


@pytest.mark.parametrize(("sign", "copying"), [(1.0, 1.0), (-1.0, -1.0)])
def test_a_head_that_hands_on_what_it_reads_copies_and_its_negative_does_the_opposite(
    sign: float, copying: float
) -> None:
    _, _, value, _ = random_head(1, heads=1, hidden=5, items=5)
    output = sign * np.linalg.inv(value)  # W_V W_O is the identity
    found = weight_numbers(None, None, value, output)
    assert found["copying"] == pytest.approx([copying])
    assert found["ov_trace"] == pytest.approx([5 * copying])
    assert found["ov_rank"] == pytest.approx([5])
    # As many directions as a head has items are copied where there are fewer of them than hidden numbers.
    narrow = random_head(2, heads=1, hidden=7, items=3)[2]
    assert weight_numbers(None, None, narrow, sign * np.linalg.pinv(narrow))["copying"] == pytest.approx([copying])


def test_a_rotation_of_a_plane_by_a_right_angle_copies_nothing() -> None:
    turn = np.array([[[0.0, 1.0], [-1.0, 0.0]]])
    assert weight_numbers(None, None, np.eye(2)[None], turn)["copying"] == pytest.approx([0])


def test_numbers_are_those_of_the_matrices_at_full_size() -> None:
    query, key, value, output = random_head(3)
    found = weight_numbers(query, key, value, output)
    for head in range(3):
        full = {"qk": query[head] @ key[head].T, "ov": value[head] @ output[head]}
        for name, matrix in full.items():
            sizes = np.linalg.svd(matrix, compute_uv=False)
            assert found[f"{name}_norm"][head] == pytest.approx(np.linalg.norm(matrix))
            assert found[f"{name}_spectral"][head] == pytest.approx(np.linalg.norm(matrix, 2))
            assert found[f"{name}_rank"][head] == pytest.approx(sizes.sum() ** 2 / (sizes**2).sum())
        values = np.linalg.eigvals(full["ov"])
        assert found["ov_trace"][head] == pytest.approx(np.trace(full["ov"]))
        assert found["copying"][head] == pytest.approx(values.real.sum() / np.abs(values).sum())
        for name, matrix in (("w_query", query), ("w_key", key), ("w_value", value), ("w_output", output)):
            assert found[f"{name}_norm"][head] == pytest.approx(np.linalg.norm(matrix[head]))
            assert found[f"{name}_spectral"][head] == pytest.approx(np.linalg.norm(matrix[head], 2))
    assert found["w_output_share"].sum() == pytest.approx(1)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_another_basis_of_the_items_of_a_head_changes_nothing_of_its_circuits(seed: int) -> None:
    query, key, value, output = random_head(seed)
    turn = np.random.default_rng(seed + 1).normal(size=(4, 4)) + 3 * np.eye(4)
    before = weight_numbers(query, key, value, output)
    turned = (query @ turn, key @ np.linalg.inv(turn).T, value @ turn, np.linalg.inv(turn) @ output)
    after = weight_numbers(*turned)
    for name in ("qk_norm", "qk_spectral", "qk_rank", "ov_norm", "ov_spectral", "ov_rank", "ov_trace", "copying"):
        np.testing.assert_allclose(after[name], before[name], rtol=1e-6, atol=1e-8, err_msg=name)
    assert not np.allclose(after["w_value_norm"], before["w_value_norm"])
    later = random_head(seed + 2)
    for relation, read in reads(*later).items():
        scores = composition(writes(value, output), read)
        np.testing.assert_allclose(composition(writes(*turned[2:]), read), scores, rtol=1e-6, err_msg=relation)


def test_what_is_not_there_is_no_number() -> None:
    query, key, value, output = random_head(4)
    found = weight_numbers(None, key, value, output)
    assert {name for name, values in found.items() if np.isnan(values).all()} == {
        "w_query_norm", "w_query_spectral", "qk_norm", "qk_spectral", "qk_rank"
    }  # fmt: skip
    assert list(reads(None, key, value, output)) == ["v"]
    wide = weight_numbers(query, key, np.concatenate([value, value], axis=1), output)
    assert np.isnan([wide["ov_trace"], wide["copying"]]).all()
    assert np.isfinite(wide["ov_norm"]).all()


def test_a_head_of_zeros_has_a_norm_of_zero_and_no_direction() -> None:
    query, key, value, output = random_head(5)
    output[1] = 0
    found = weight_numbers(query, key, value, output)
    assert found["w_output_share"][1] == found["ov_norm"][1] == 0
    assert np.isnan([found["copying"][1], found["ov_rank"][1]]).all()
    pairs = overlaps(output)
    beside = (pairs["head_a"] == 1) | (pairs["head_b"] == 1)
    for name in ("cosine_smallest", "cosine_mean", "cosine_largest", "overlap", "random"):
        np.testing.assert_array_equal(np.isnan(np.asarray(pairs[name], float)), beside, err_msg=name)
    scores = composition(writes(value, output), reads(*random_head(6))["v"])
    np.testing.assert_array_equal(np.isnan(scores), np.repeat([[False], [True], [False]], 3, axis=1))
    nothing = weight_numbers(query, key, value, np.zeros_like(output))
    assert np.isnan(nothing["w_output_share"]).all()


def test_overlaps_of_planes_are_those_computed_by_hand() -> None:
    x, y, z, u = np.eye(4)
    tilted = np.cos(0.3) * y + np.sin(0.3) * z
    output = np.array([[x, 2 * y], [x + y, x - y], [3 * x, tilted], [z, u]])
    found = {
        (a, b): row
        for a, b, *row in zip(
            *(overlaps(output)[name].tolist() for name in (
                "head_a", "head_b", "cosine_smallest", "cosine_mean", "cosine_largest", "overlap", "random"
            )),
            strict=True,
        )
    }  # fmt: skip
    assert list(found) == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    assert found[0, 1] == pytest.approx([1, 1, 1, 1, 0.5])
    assert found[0, 2] == pytest.approx([1, np.cos(0.15), np.cos(0.3), (1 + np.cos(0.3) ** 2) / 2, 0.5], abs=1e-7)
    assert found[0, 3] == pytest.approx([0, 0, 0, 0, 0.5], abs=1e-12)
    assert found[2, 3] == pytest.approx(
        [np.sin(0.3), np.cos((np.pi / 2 - 0.3 + np.pi / 2) / 2), 0, np.sin(0.3) ** 2 / 2, 0.5], abs=1e-7
    )


def test_a_head_that_writes_on_one_line_is_compared_by_that_line() -> None:
    output = np.array([[[1.0, 0, 0], [2, 0, 0]], [[0.6, 0.8, 0], [0, 0, 1]]])
    found = {name: values.item() for name, values in overlaps(output).items() if not name.startswith("head")}
    expected = {"cosine_smallest": 0.6, "cosine_mean": 0.6, "cosine_largest": 0.6, "overlap": 0.36, "random": 2 / 3}
    assert found == pytest.approx(expected)


def test_overlaps_at_random_are_as_large_as_said() -> None:
    rng = np.random.default_rng(8)
    found = overlaps(rng.normal(size=(40, 3, 10)))
    values = np.asarray(found["overlap"], float)
    assert set(np.asarray(found["random"], float)) == {0.3}
    assert values.mean() == pytest.approx(0.3, abs=0.01)


def test_a_core_has_the_gram_of_its_matrix() -> None:
    matrix = random_head(9)[0]
    small = core(matrix)
    np.testing.assert_allclose(small.swapaxes(1, 2) @ small, matrix.swapaxes(1, 2) @ matrix, atol=1e-12)


def test_compositions_are_those_of_the_matrices_at_full_size() -> None:
    (_, _, value, output), later = random_head(10, heads=2), random_head(11, heads=3, items=2)
    found = {name: composition(writes(value, output), read) for name, read in reads(*later).items()}
    assert list(found) == ["q", "k", "v"]
    for b, (q, k, v, o) in enumerate(zip(*later, strict=True)):
        full = {"q": q @ k.T, "k": k @ q.T, "v": v @ o}
        for relation, matrix in full.items():
            for a in range(2):
                moved = value[a] @ output[a]
                size = np.linalg.norm(moved @ matrix) / np.linalg.norm(moved) / np.linalg.norm(matrix)
                assert found[relation][a, b] == pytest.approx(size), (relation, a, b)


def test_composition_of_heads_of_one_direction_is_the_cosine_between_them() -> None:
    value, output = np.array([[[1.0], [0.0]]]), np.array([[[0.6, 0.8]]])
    reader = reads(np.array([[[1.0], [0.0]]]), np.array([[[0.0], [5.0]]]), np.array([[[2.0], [0.0]]]), output)
    found = {name: composition(writes(value, output), read).item() for name, read in reader.items()}
    assert found == pytest.approx({"q": 0.6, "k": 0.8, "v": 0.6})


def test_the_mean_square_of_a_composition_at_random_is_one_over_the_hidden_size() -> None:
    rng = np.random.default_rng(12)
    _, _, value, output = random_head(13, heads=1, hidden=8, items=3)
    wrote, squares = writes(value, output), []
    matrices = rng.normal(size=(4000, 8, 2)) * [5, 1] @ rng.normal(size=(4000, 2, 8))  # far from equal singular values
    turned = np.linalg.qr(rng.normal(size=(4000, 8, 8)))[0] @ matrices
    for part in np.array_split(turned, 4):
        read = part / np.linalg.norm(part, axis=(1, 2), keepdims=True)
        squares.append(composition(wrote, read)[0] ** 2)
    assert np.concatenate(squares).mean() == pytest.approx(1 / 8, rel=0.03)
