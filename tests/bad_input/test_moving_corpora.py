"""A corpus that changes while it is read, or between two runs, is noticed."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import attnstore
from attnstore.errors import BadInput
from attnstore.format.commit import published
from attnstore.job import plan as plan_module
from attnstore.job.run import ingest
from tests.bad_input.refusing import content
from tests.conftest import arrays_recipe, write_arrays


def test_a_corpus_that_changes_while_it_is_read_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_module, "SEGMENT_TOKENS", 10)
    corpus = write_arrays(tmp_path / "c", ["rain fell", "he left it", "she came too"])
    text = corpus.read_text()
    real = attnstore.job.begin.write_once

    def changed(*args: Any) -> bool:
        # After the plan: as many examples and tokens as before, with another word in the last.
        corpus.write_text(text.replace("too", "two"))
        return real(*args)

    monkeypatch.setattr("attnstore.job.begin.write_once", changed)
    with pytest.raises(BadInput, match=r"reading the corpus again: examples 2 to 2 are not what they were"):
        ingest(arrays_recipe(corpus), tmp_path / "s")
    assert published(tmp_path / "s", "segments") == ["000000"]
    corpus.write_text(text)
    monkeypatch.setattr("attnstore.job.begin.write_once", real)
    with ingest(arrays_recipe(corpus), tmp_path / "s") as store:
        assert [row["text"] for row in store.sql("select text from examples order by example")][2] == "she came too"


@pytest.mark.parametrize("key", ["words", "mentions", "links", "split", "document"])
def test_a_corrected_annotation_is_another_corpus(tmp_path: Path, key: str) -> None:
    corpus = write_arrays(tmp_path / "c", ["rain fell"])
    ingest(arrays_recipe(corpus), tmp_path / "s").close()
    line = json.loads(corpus.read_text())
    spans = {"source_start_word": 0, "source_end_word": 1, "target_start_word": 1, "target_end_word": 2}
    line[key] = {
        "words": [{"form": "rain", "governor": 1, "deprel": "nsubj"}, {"form": "fell", "deprel": "root"}],
        "mentions": [{"cluster": "x", "start_word": 0, "end_word": 1}],
        "links": [{"relation": "r", **spans}],
        "split": "dev",
        "document": "d",
    }[key]
    corpus.write_text(json.dumps(line))
    with pytest.raises(BadInput, match=r"by another recipe, corpus or model: corpus\.fingerprint"):
        ingest(arrays_recipe(corpus), tmp_path / "s")


def test_numbers_of_maps_that_changed_between_two_runs_are_stored_as_they_are(tmp_path: Path) -> None:
    """A finished store is not looked at again: the maps of a corpus are not part of its fingerprint."""
    corpus = write_arrays(tmp_path / "c", ["rain fell"])
    ingest(arrays_recipe(corpus), tmp_path / "s").close()
    before = content(tmp_path / "s")
    np.savez(corpus.parent / "maps.npz", **{"s0/encoder": np.full((2, 3, 4, 4), 0.25, np.float32)})
    ingest(arrays_recipe(corpus), tmp_path / "s").close()
    after = content(tmp_path / "s")
    assert {name: after[name] for name in after if name != "README.md"} == {
        name: before[name] for name in before if name != "README.md"
    }
