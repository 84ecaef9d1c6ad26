"""Labels reach a finished store as an addition, and additions do not undo each other."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import attnstore
from attnstore.errors import BadInput
from attnstore.format.verify import verify
from attnstore.job import plan as plan_module
from attnstore.job.annotate import annotate_labels
from attnstore.job.run import ingest
from tests.conftest import SENTENCES, arrays_recipe, write_arrays
from tests.job.annotating import table


def test_a_name_made_from_file_and_line_says_nothing_about_another_corpus(tmp_path: Path) -> None:
    # The store's example is corpus:2 and so is the second row of labels in corpus.csv, by chance.
    corpus = write_arrays(tmp_path / "c", SENTENCES[:2])
    lines = [{k: v for k, v in json.loads(line).items() if k != "name"} for line in corpus.read_text().splitlines()]
    maps = np.load(corpus.parent / "maps.npz")
    for number, line in enumerate(lines):
        np.savez(corpus.parent / f"{number}.npz", encoder=maps[f"s{number}/encoder"])
        line["maps"] = f"{number}.npz"
    corpus.write_text("\n".join(map(json.dumps, lines)) + "\n")
    ingest(arrays_recipe(corpus), tmp_path / "s.attn").close()
    assert [row["name"] for row in table(tmp_path / "s.attn", "examples")] == ["corpus:1", "corpus:2"]
    (tmp_path / "corpus.csv").write_text(f'text,label\n"{SENTENCES[0]}",first\n"{SENTENCES[1]}",second\n')
    annotate_labels(tmp_path / "s.attn", tmp_path / "corpus.csv")
    assert [row["label"] for row in table(tmp_path / "s.attn", "examples")] == ["first", "second"]


def test_equal_texts_take_their_annotations_in_order(tmp_path: Path) -> None:
    corpus = write_arrays(tmp_path / "c", ["rain fell"] * 3 + ["he left"])
    ingest(arrays_recipe(corpus), tmp_path / "s.attn").close()
    (tmp_path / "l.csv").write_text("text,label\nrain fell,a\nrain fell,b\nhe left,c\nhe left,d\n")
    done = annotate_labels(tmp_path / "s.attn", tmp_path / "l.csv")
    # The third "rain fell" gets the last label of that text; the second "he left" has no example left.
    assert [row["label"] for row in table(tmp_path / "s.attn", "examples")] == ["a", "b", "b", "c"]
    assert (done.examples, done.unmatched) == (4, ("l.csv:5",))


def test_labels_replace_labels_and_leave_the_rest(tmp_path: Path, exact: Path) -> None:
    before = table(exact, "examples")
    for text in ("name,text,label\ns0,x,old\ns1,x,old\n", "name,text,label\ns1,x,new\ns2,x,\n"):
        (tmp_path / "l.csv").write_text(text)
        annotate_labels(exact, tmp_path / "l.csv")
    after = table(exact, "examples")
    assert [row["label"] for row in after] == ["old", "new", None, None, None, None, None]
    assert [{**row, "label": None} for row in after] == before
    assert [row["label"] for row in table(exact, "examples", snapshot=2)][:2] == ["old", "old"]
    assert verify(exact, deep=True) == []


def test_a_store_that_is_not_finished_is_refused(
    tmp_path: Path, arrays_corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_module, "SEGMENT_TOKENS", 20)
    monkeypatch.setattr("attnstore.job.run.SNAPSHOT_SECONDS", -1.0)
    real = attnstore.job.build.fill

    def stops(staging: Path, segment: Any, *rest: Any) -> Any:
        if segment.number == 1:
            raise KeyboardInterrupt
        return real(staging, segment, *rest)

    monkeypatch.setattr("attnstore.job.build.fill", stops)
    with pytest.raises(KeyboardInterrupt):
        ingest(arrays_recipe(arrays_corpus), tmp_path / "s.attn")
    (tmp_path / "l.csv").write_text("name,text,label\ns0,x,a\n")
    with pytest.raises(BadInput, match=r"1 of \d segments; expected a finished store"):
        annotate_labels(tmp_path / "s.attn", tmp_path / "l.csv")


def test_labels_without_a_label_are_refused(tmp_path: Path, exact: Path) -> None:
    (tmp_path / "l.csv").write_text("name,text\ns3,rain fell\n")
    with pytest.raises(BadInput, match="no label in it"):
        annotate_labels(exact, tmp_path / "l.csv")


def test_two_annotations_at_once_do_not_undo_each_other(
    tmp_path: Path, exact: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "l.csv").write_text("name,text,label\ns0,x,a\n")
    (tmp_path / "m.csv").write_text("name,text,label\ns1,x,b\n")
    real = attnstore.job.addition.seal
    once: list[int] = []

    def meanwhile(*args: Any) -> Any:
        if not once:
            once.append(1)
            annotate_labels(exact, tmp_path / "m.csv")
        return real(*args)

    monkeypatch.setattr("attnstore.job.addition.seal", meanwhile)
    with pytest.raises(BadInput, match=r"another addition was made meanwhile.*Run the same command again"):
        annotate_labels(exact, tmp_path / "l.csv")
    annotate_labels(exact, tmp_path / "l.csv")
    assert [row["label"] for row in table(exact, "examples")][:2] == ["a", "b"]
    assert not list(exact.glob("additions/.staging-*"))


def test_an_annotation_that_was_published_and_not_committed_is_taken_up(
    tmp_path: Path, exact: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "l.csv").write_text("name,text,label\ns0,x,a\n")
    (tmp_path / "m.csv").write_text("name,text,label\ns1,x,b\n")
    with monkeypatch.context() as patch:
        patch.setattr("attnstore.job.addition.commit", lambda *args: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            annotate_labels(exact, tmp_path / "l.csv")
    assert table(exact, "examples")[0]["label"] is None
    annotate_labels(exact, tmp_path / "m.csv")
    assert [row["label"] for row in table(exact, "examples")][:2] == ["a", "b"]
