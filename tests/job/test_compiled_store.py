"""A store whose facts and rounding were compiled has the maps and the answers of one that NumPy made."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import attnstore
from attnstore.job import segment as segment_module
from attnstore.job.run import ingest
from tests.conftest import SENTENCES, arrays_recipe, write_arrays

pytest.importorskip("numba")
pytestmark = pytest.mark.slow

QUESTIONS = ("heads/entropy", "heads/positions", "heads/special", "heads/confidence", "relations/best", "heads/roles")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same corpus ingested both ways."""
    place = tmp_path_factory.mktemp("both")
    corpus = write_arrays(place / "c", SENTENCES * 3, layers=3, heads=4)
    found = {}
    for way, threshold in (("numpy", 2**62), ("compiled", 0)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(segment_module, "COMPILED_WEIGHTS", threshold)
            ingest(arrays_recipe(corpus), place / f"{way}.attn").close()
        found[way] = place / f"{way}.attn"
    return found


def test_maps_have_the_same_bytes(made: dict[str, Path]) -> None:
    shards = [
        {path.relative_to(root): path.read_bytes() for path in root.glob("segments/*/maps.zarr/**/*") if path.is_file()}
        for root in made.values()
    ]
    assert len(shards[0]) >= 4
    assert shards[0] == shards[1]


@pytest.mark.parametrize("table", ["token_facts", "word_facts", "head_facts"])
def test_tables_of_facts_agree(made: dict[str, Path], table: str) -> None:
    one, two = (pq.read_table(root / f"segments/000000/{table}.parquet") for root in made.values())
    assert one.schema == two.schema
    for name in one.column_names:
        first, second = (column.combine_chunks() for column in (one[name], two[name]))
        if name in ("entropy_nats", *(name for name in one.column_names if name.endswith("_sum"))):
            flat = (np.asarray(v.flatten() if hasattr(v, "flatten") else v, np.float64) for v in (first, second))
            np.testing.assert_allclose(*flat, rtol=1e-3 if name == "entropy_nats" else 1e-5, atol=1e-5, err_msg=name)
        else:
            assert first.equals(second), name


@pytest.mark.parametrize("question", QUESTIONS)
def test_answers_agree(made: dict[str, Path], question: str) -> None:
    answers = []
    for root in made.values():
        with attnstore.open(root) as store:
            answers.append(list(store.ask(question)))
    assert len(answers[0]) == len(answers[1]) > 0
    for one, two in zip(*answers, strict=True):
        assert one == {k: pytest.approx(v, rel=1e-4, abs=1e-5) if isinstance(v, float) else v for k, v in two.items()}
