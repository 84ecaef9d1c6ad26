"""This file makes recipes of ablations for their tests, and reads what the store then holds."""

from pathlib import Path
from typing import Any

import pytest

import attnstore
from attnstore.job import plan as plan_module
from attnstore.job.evidence import ablations as ablations_module
from tests.job.task_models import evidence_recipe, labelled, task_model

HEADS = [(layer, head) for layer in range(2) for head in range(4)]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return labelled(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return task_model(tmp_path_factory.mktemp("models"), "bert", "classification")


@pytest.fixture
def short_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several segments from five short texts, and several parts of each."""
    monkeypatch.setattr(plan_module, "SEGMENT_TOKENS", 20)
    monkeypatch.setattr(ablations_module, "TOGETHER", 5)


def recipe(corpus: Path, model: Path, plan: list[str], task: str = "classification", **keys: Any) -> Any:
    keys = {f"ablations__{name}" if "__" not in name else name: value for name, value in keys.items()}
    return evidence_recipe(corpus, model, ("ablations",), task, ablations__plan=plan, **keys)


def rows(store: Path, sql: str) -> list[dict[str, Any]]:
    with attnstore.open(store) as opened:
        return opened.sql(sql).to_arrow().to_pylist()


def values(store: Path, metric: str) -> dict[str, float]:
    found = rows(store, f"select head_set, value from head_scores where metric = '{metric}'")
    return {row["head_set"]: row["value"] for row in found}
