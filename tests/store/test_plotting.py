"""This file proves that matplotlib draws every picture with the numbers of the answer."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from attnstore.errors import BadInput
from tests.store.answers import answer
from tests.store.test_figures import EVIDENCE, HEADS

plt = pytest.importorskip("matplotlib.pyplot")
BARS = {"relation": ["det", "obj"], "accuracy": [0.8, None], "baseline": [0.5, 0.3]}


@pytest.fixture(autouse=True)
def no_window() -> Iterator[None]:
    plt.switch_backend("Agg")
    yield
    plt.close("all")


def words(axes: Any) -> list[str]:
    return [text.get_text() for text in axes.get_xticklabels() + axes.get_yticklabels() + axes.texts]


def test_a_grid_is_an_image_of_the_answer() -> None:
    axes = answer("value", HEADS).plot()
    np.testing.assert_array_equal(axes.images[0].get_array().filled(np.nan), [[0.25, np.nan], [0.75, np.nan]])
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_title()) == ("head", "layer", "heads/made: value")


def test_values_over_layers_are_points_and_a_line_of_means() -> None:
    axes = answer("layers(value)", HEADS).plot()
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), [0.25, 0.75])
    assert len(axes.collections) == 1
    assert axes.get_legend() is not None


def test_a_picture_is_chosen_by_name_or_described() -> None:
    result = answer("value, layers(value)", HEADS)
    assert result.plot(picture="layers").get_ylabel() == "value"
    assert len(result.plot(picture="bars(value, by=head)").patches) == 3
    assert result.plot("layer").images[0].get_array().tolist() == [[0, 0], [1, None]]


def test_bars_have_their_baselines() -> None:
    axes = answer("bars(accuracy, baseline, by=relation)", BARS).plot()
    assert axes.patches[0].get_width() == 0.8
    assert axes.collections[0].get_offsets()[:, 0].tolist() == [0.5, 0.3]
    assert words(axes)[-2:] == ["det", "obj"]


def test_parts_of_a_whole_lie_end_to_end() -> None:
    axes = answer("stack(v, of=p, by=layer)", {"layer": [0, 0], "p": ["a", "b"], "v": [1.0, 3.0]}).plot()
    assert [(patch.get_x(), patch.get_width()) for patch in axes.patches] == [(0.0, 0.25), (0.25, 0.75)]


def test_heads_in_a_plane_have_equal_units_and_labels() -> None:
    axes = answer("scatter(x, y, label=l)", {"x": [0.0, 9.0], "y": [0.0, 1.0], "l": ["3-9", None]}).plot()
    assert axes.get_aspect() == 1.0
    assert [text.get_text() for text in axes.texts] == ["3-9"]


def test_evidence_has_its_words_and_arrows() -> None:
    axes = answer("evidence", EVIDENCE).plot()
    assert [text.get_text() for text in axes.texts if text.get_text()][:5] == ["the", "cat", "saw", "a", "dog"]
    # A right prediction, a wrong one with the right word, and a right word without a prediction.
    assert sum(text.get_text() == "" for text in axes.texts) == 4


def test_several_panels_are_an_array_of_axes() -> None:
    columns = {"layer": [0, 1], "head": [0, 0], "offset": [1, 1], "mass": [0.5, 0.25]}
    result = answer("profile(mass, offset)", columns)
    found = result.plot()
    assert [axes.get_title() for axes in found.flat] == ["layer 0", "layer 1"]
    with pytest.raises(BadInput, match=r"2 pictures \(layer 0; layer 1\); expected one"):
        result.plot(ax=plt.subplots()[1])


@pytest.mark.parametrize(
    "paint",
    [
        "value",
        "layers(value, by=text)",
        "scatter(value, value, label=text, by=text)",
        "bars(value, value, by=text)",
        "stack(value, of=text, by=layer)",
        "matrix(value, layer, head)",
        "profile(value, head)",
        "grid(text)",
    ],
)
@pytest.mark.parametrize("n_rows", [0, 1])
def test_an_answer_without_values_is_drawn(paint: str, n_rows: int) -> None:
    columns = {
        "layer": pa.array([0] * n_rows, pa.int64()),
        "head": pa.array([0] * n_rows, pa.int64()),
        "value": pa.array([None] * n_rows, pa.float64()),
        "text": pa.array([None] * n_rows, pa.string()),
    }
    axes = answer(paint, columns).plot()
    axes.figure.canvas.draw()
