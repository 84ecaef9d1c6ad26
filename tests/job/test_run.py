"""A run ends with everything or can be taken up again; what was finished is never touched."""

import contextlib
import errno
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from attnstore.errors import AttnStoreError, BadInput, NoSpace
from attnstore.format import commit as commit_module
from attnstore.format.commit import latest, published
from attnstore.format.verify import verify
from attnstore.job import plan as plan_module
from attnstore.job.run import estimate, ingest
from tests.conftest import SENTENCES, arrays_recipe, write_arrays
from tests.job.stopping import Stop, fail_at


@pytest.fixture(autouse=True)
def _small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_module, "SEGMENT_TOKENS", 20)


def content(store: Path) -> dict[str, bytes]:
    """Every file but those that carry the time: what two equal runs must share."""
    files = (path for path in store.rglob("*") if path.is_file() and "snapshots" not in path.parts)
    return {path.relative_to(store).as_posix(): path.read_bytes() for path in files if path.name != "README.md"}


@pytest.fixture(scope="module")
def short_corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_arrays(tmp_path_factory.mktemp("short"), SENTENCES[3:6], layers=1, heads=2)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, arrays_corpus: Path) -> Path:
    place = tmp_path_factory.mktemp("undisturbed") / "s.attn"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan_module, "SEGMENT_TOKENS", 20)
        ingest(arrays_recipe(arrays_corpus), place).close()
    return place


def test_a_corpus_is_cut_into_segments_that_follow_one_another(undisturbed: Path) -> None:
    assert published(undisturbed, "segments") == [f"{n:06d}" for n in range(len(published(undisturbed, "segments")))]
    assert len(published(undisturbed, "segments")) >= 3
    assert verify(undisturbed, deep=True) == []


def test_the_same_call_again_changes_nothing(undisturbed: Path, arrays_corpus: Path) -> None:
    before, pinned = content(undisturbed), latest(undisturbed)
    ingest(arrays_recipe(arrays_corpus), undisturbed).close()
    assert content(undisturbed) == before
    assert latest(undisturbed) == pinned


def count_steps(tmp_path: Path, corpus: Path) -> int:
    with pytest.MonkeyPatch.context() as patch:
        seen = fail_at(patch, -1, OSError)
        ingest(arrays_recipe(corpus), tmp_path / "counted.attn").close()
    return seen[0]


EVERY = 9
"""Each of so many cases stops a run at one step of so many, so that together they stop it at each step once."""


@pytest.mark.parametrize("first", [1, *(pytest.param(n, marks=pytest.mark.slow) for n in range(2, EVERY + 1))])
def test_a_run_stopped_at_any_step_resumes_to_the_same_bytes(tmp_path: Path, short_corpus: Path, first: int) -> None:
    kind = ("killed", "io error", "disk full")[(first - 1) % 3]
    make = {
        "killed": Stop,
        "io error": lambda: OSError(errno.EIO, "input/output error"),
        "disk full": lambda: OSError(errno.ENOSPC, "no space left on device"),
    }[kind]
    steps = count_steps(tmp_path, short_corpus)
    expected = content(tmp_path / "counted.attn")
    assert steps > 50
    stopped = 0
    for n in range(first, steps + 1, EVERY):
        store = tmp_path / f"{n}.attn"
        with pytest.MonkeyPatch.context() as patch:
            fail_at(patch, n, make)
            raised: tuple[type[BaseException], ...] = (NoSpace,) if kind == "disk full" else (Stop, OSError)
            with contextlib.suppress(*raised):
                ingest(arrays_recipe(short_corpus), store).close()
                stopped -= 1
            stopped += 1
        if store.exists() and commit_module.snapshots(store):
            assert verify(store, deep=True) == []  # what is visible is whole
        ingest(arrays_recipe(short_corpus), store).close()
        assert {k: v for k, v in content(store).items() if ".staging-" not in k} == expected, f"step {n}"
        shutil.rmtree(store)
    assert stopped > 3


@pytest.mark.slow
def test_killed_processes_leave_only_whole_segments(tmp_path: Path) -> None:
    corpus = write_arrays(tmp_path / "c", SENTENCES * 40, layers=4, heads=6)
    script = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[3])\n"
        "from attnstore.job import plan, run; plan.SEGMENT_TOKENS = 60; run.SNAPSHOT_SECONDS = 0.0\n"
        "from tests.conftest import arrays_recipe\n"
        "run.ingest(arrays_recipe(Path(sys.argv[1])), sys.argv[2])\n"
    )
    root = str(Path(__file__).parents[2])
    command = [sys.executable, "-c", script, str(corpus), str(tmp_path / "s.attn"), root]
    kills = 0
    for attempt in range(40):
        writers = [subprocess.Popen(command, stderr=subprocess.DEVNULL) for _ in range(2)]
        time.sleep(0.9 + 0.05 * attempt)
        alive = [writer for writer in writers if writer.poll() is None]
        for writer in alive:
            writer.send_signal(signal.SIGKILL)
        kills += len(alive)
        assert all(writer.wait() in (0, -signal.SIGKILL) for writer in writers)
        if (tmp_path / "s.attn" / "snapshots").is_dir() and commit_module.snapshots(tmp_path / "s.attn"):
            assert verify(tmp_path / "s.attn", deep=True) == []
        if not alive:
            break
    assert kills >= 2  # as many as there are writers: the first two at least were in the midst of it
    assert len(latest(tmp_path / "s.attn").segments) == len(published(tmp_path / "s.attn", "segments")) > 10


def test_two_writers_share_the_work_and_agree(tmp_path: Path, arrays_corpus: Path, undisturbed: Path) -> None:
    failures: list[BaseException] = []

    def write() -> None:
        try:
            ingest(arrays_recipe(arrays_corpus), tmp_path / "s.attn").close()
        except BaseException as error:
            failures.append(error)

    writers = [threading.Thread(target=write) for _ in range(2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert failures == []
    assert content(tmp_path / "s.attn") == content(undisturbed)
    assert latest(tmp_path / "s.attn").content_hash == latest(undisturbed).content_hash


def test_the_store_of_another_recipe_is_refused_and_left_alone(undisturbed: Path, arrays_corpus: Path) -> None:
    before = content(undisturbed)
    with pytest.raises(BadInput, match=r"recipe\.keep\.precision: 'standard' in the store, 'exact' now"):
        ingest(arrays_recipe(arrays_corpus, keep__precision="exact"), undisturbed)
    assert content(undisturbed) == before


def test_the_store_of_a_changed_corpus_is_refused(tmp_path: Path) -> None:
    ingest(arrays_recipe(write_arrays(tmp_path / "c", SENTENCES[:3])), tmp_path / "s.attn").close()
    changed = write_arrays(tmp_path / "c", SENTENCES[1:4])
    with pytest.raises(BadInput, match=r"corpus\.fingerprint"):
        ingest(arrays_recipe(changed), tmp_path / "s.attn")


def test_a_folder_with_other_files_is_refused(tmp_path: Path, arrays_corpus: Path) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "thesis.tex").write_text("x")
    with pytest.raises(BadInput, match=r"a folder that holds thesis\.tex"):
        ingest(arrays_recipe(arrays_corpus), tmp_path / "s")
    assert [path.name for path in (tmp_path / "s").iterdir()] == ["thesis.tex"]


def test_a_disk_that_cannot_hold_it_is_refused_before_anything_is_written(
    tmp_path: Path, arrays_corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1000))
    with pytest.raises(NoSpace, match=r"MiB to write and 0 MiB free.*keep less"):
        ingest(arrays_recipe(arrays_corpus), tmp_path / "s.attn")
    assert not (tmp_path / "s.attn").exists()


def test_an_estimate_counts_what_the_run_stores(arrays_corpus: Path, arrays_maps: dict[str, Any]) -> None:
    plan = estimate(arrays_recipe(arrays_corpus))
    assert plan.n_examples == len(SENTENCES)
    assert plan.n_weights == sum(maps.size for maps in arrays_maps.values())
    assert plan.n_tokens == sum(maps.shape[2] for maps in arrays_maps.values())
    assert plan.longest == max(maps.shape[2] for maps in arrays_maps.values())


@pytest.mark.parametrize(("text", "message"), [("", "no example"), ("\n\n", "no example")])
def test_an_empty_corpus_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "c.jsonl").write_text(text)
    with pytest.raises(AttnStoreError, match=message):
        ingest(arrays_recipe(tmp_path / "c.jsonl"), tmp_path / "s.attn")


@pytest.mark.parametrize("key", ["keep__layers", "keep__heads"])
def test_layers_and_heads_out_of_range_are_refused(tmp_path: Path, arrays_corpus: Path, key: str) -> None:
    with pytest.raises(BadInput, match=r"\[7\]; expected numbers from 0 to"):
        ingest(arrays_recipe(arrays_corpus, **{key: [0, 7]}), tmp_path / "s.attn")
