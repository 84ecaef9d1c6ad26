"""Evidence of the model comes along into derived stores where it is still true, and is told where it is left out."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import attnstore
from attnstore.format.verify import verify
from attnstore.job import plan as plan_module
from attnstore.job.run import ingest
from attnstore.share.compact import compact
from attnstore.share.less import less
from attnstore.share.merge import merge

pytest.importorskip("torch")
pytest.importorskip("transformers")

from tests.capture.conftest import one_thread
from tests.job.task_models import LABELS, evidence_recipe, labelled, task_model

__all__ = ["one_thread"]  # a fixture
pytestmark = pytest.mark.slow

EVIDENCE = ("gradient_maps", "integrated_gradients", "importance", "predictions", "weights", "value_norms")
TABLES = ("importance_facts", "attribution_facts", "predictions", "head_weights", "value_norms")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("evidence")
    corpus, model = labelled(place), task_model(place, "bert", "classification")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan_module, "SEGMENT_TOKENS", 20)
        recipe = evidence_recipe(corpus, model, EVIDENCE, "classification", task__labels=list(LABELS))
        ingest(recipe, place / "source.attn").close()
    return place / "source.attn"


def rows(path: Path, where: str = "true", shift: int = 0) -> dict[str, list[tuple[tuple[Any, Any], ...]]]:
    """The rows of TABLES, of the examples for which a condition holds, their numbers less `shift`."""
    found = {}
    with attnstore.open(path) as store:
        for table in TABLES:
            held = store.sql(f"select * from stored.{table}").to_arrow().to_pylist()
            chosen = store.sql(f"select example from examples where {where}").to_arrow()["example"].to_pylist()
            own = [row for row in held if "example" not in row or row["example"] in chosen]
            found[table] = sorted(
                (
                    tuple((key, value - shift if key == "example" else value) for key, value in row.items())
                    for row in own
                ),
                key=repr,
            )
    return found


def derivatives(path: Path, names: list[str]) -> list[bytes]:
    """The gradients of the examples of these names that have any."""
    found = []
    with attnstore.open(path) as store:
        sizes = store.sql("select name, segment, cell_encoder as cell, n_tokens as n from stored.examples").to_arrow()
        for row in sorted(sizes.to_pylist(), key=lambda row: str(row["name"])):
            if row["name"] in names:
                cells = slice(row["cell"], row["cell"] + row["n"] ** 2)
                kind = store.info.kinds["encoder"]
                for what in ("gradient", "integrated"):
                    codes = store.engine.cells.codes(
                        row["segment"], f"encoder_{what}", slice(0, kind.layers), slice(0, kind.heads), cells
                    )
                    found.append(np.ascontiguousarray(codes).tobytes())
    return found


def names_of(path: Path) -> list[str]:
    with attnstore.open(path) as store:
        found = store.sql("select name from examples order by example").to_arrow()["name"].to_pylist()
        return [str(name) for name in found]


def test_all_of_it_is_in_a_compacted_store(source: Path, tmp_path: Path) -> None:
    made = compact(source, tmp_path / "target.attn")
    assert verify(made, deep=True) == []
    assert rows(made) == rows(source)
    assert derivatives(made, names_of(source)) == derivatives(source, names_of(source))
    assert "left_out" not in json.loads((made / "store.json").read_bytes())


def test_chosen_examples_have_theirs(source: Path, tmp_path: Path) -> None:
    made = less(source, tmp_path / "target.attn", examples="example >= 2")
    assert verify(made, deep=True) == []
    assert rows(made) == rows(source, "example >= 2", 2)
    assert derivatives(made, names_of(made)) == derivatives(source, names_of(made))


def test_halves_that_are_merged_have_all_again(source: Path, tmp_path: Path) -> None:
    halves = [less(source, tmp_path / f"{sign}.attn", examples=f"example {sign} 2") for sign in ("<", ">=")]
    made = merge(halves, tmp_path / "both.attn")
    assert verify(made, deep=True) == []
    assert rows(made) == rows(source)
    assert derivatives(made, names_of(source)) == derivatives(source, names_of(source))


def test_arrays_of_other_heads_do_not_slip_through(source: Path, tmp_path: Path) -> None:
    made = less(source, tmp_path / "target.attn", layers=[0])
    assert verify(made, deep=True) == []
    assert not list(made.glob("additions/*/maps.zarr"))
    assert rows(made) == rows(source)
    told = json.loads((made / "store.json").read_bytes())["left_out"]["tables"]
    assert told == ["gradient_maps", "integrated_gradients"]


def test_labels_are_in_no_manifest_of_a_store_without_text(source: Path, tmp_path: Path) -> None:
    made = less(source, tmp_path / "target.attn", no_text=True)
    assert verify(made, deep=True) == []
    plain = b"".join(file.read_bytes() for file in source.rglob("*.json"))
    hidden = b"".join(file.read_bytes() for file in made.rglob("*.json"))
    shown = [label for label in LABELS if f'"{label}"'.encode() in plain]
    assert shown
    assert [label for label in shown if f'"{label}"'.encode() in hidden] == []
    with attnstore.open(made) as store:
        right = store.sql("select gold, predicted from predictions where gold is not null").to_arrow().to_pylist()
    assert right
    assert all(row["gold"].startswith("label ") and row["predicted"].startswith("label ") for row in right)
