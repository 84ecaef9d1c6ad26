"""A small decoder learns to copy, and the question finds the heads that do it (docs/induction.py)."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.capture.conftest import one_thread  # noqa: E402

__all__ = ["one_thread"]  # a fixture
pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parents[2] / "docs" / "induction.py"


@pytest.fixture(scope="module")
def induction() -> ModuleType:
    spec = importlib.util.spec_from_file_location("induction", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def models(induction: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[float]]:
    """A folder with the model before and after training, and the losses."""
    folder = tmp_path_factory.mktemp("induction")
    model = induction.new_model(0)
    induction.save(model, folder / "untrained")
    losses = list(induction.train(model, 600, 2))
    induction.save(model, folder / "trained")
    return folder, losses


def best(induction: ModuleType, folder: Path, length: int) -> dict[tuple[int, str], float]:
    """The largest value of a layer's heads, by layer and score."""
    found: dict[tuple[int, str], float] = {}
    for row in induction.scores(folder, length):
        key = (row["layer"], row["score"])
        found[key] = max(found.get(key, 0), row["value"])
    return found


def test_the_loss_on_what_was_seen_before_drops_from_that_of_a_guess(models: tuple[Path, list[float]]) -> None:
    _, losses = models
    assert losses[0] == pytest.approx(5.3, abs=0.2)  # ln 200
    assert sum(losses[-20:]) / 20 < 0.5


# Neither is a period on which the model was trained more than on others.
@pytest.mark.parametrize("length", [12, 30])
def test_previous_token_heads_stand_out_below_and_induction_heads_above(
    induction: ModuleType, models: tuple[Path, list[float]], length: int
) -> None:
    found = best(induction, models[0] / "trained", length)
    assert found[1, "induction"] > 0.5
    assert found[0, "induction"] < 0.15
    assert found[0, "previous"] > 0.3
    assert found[0, "previous"] > 2 * found[1, "previous"]
    assert found[1, "induction"] > 3 * found[1, "duplicate"]


def test_an_untrained_model_attends_to_everything_alike(
    induction: ModuleType, models: tuple[Path, list[float]]
) -> None:
    for row in induction.scores(models[0] / "untrained", 30):
        assert row["value"] == pytest.approx(row["chance"], abs=0.005)
