"""A folder that cannot be written, or a disk that fills up, ends in an error; finished segments are kept."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from attnstore.errors import BadInput
from attnstore.job.run import ingest
from tests.conftest import arrays_recipe, write_arrays


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("file/s.attn", ["file/s.attn", "Not a directory"]),
        ("file", ["a file of that name"]),
        ("x" * 300, ["too long"]),
    ],
    ids=["under a file", "a file", "a long name"],
)
def test_a_place_where_no_store_can_be_is_refused(
    tmp_path: Path, arrays_corpus: Path, place: str, told: list[str]
) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(BadInput) as caught:
        ingest(arrays_recipe(arrays_corpus), tmp_path / place)
    assert all(part in str(caught.value) for part in told), caught.value
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_refused(tmp_path: Path, arrays_corpus: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    with pytest.raises(BadInput, match=r"closed.*Permission denied.*a folder that can be written"):
        ingest(arrays_recipe(arrays_corpus), tmp_path / "closed" / "s.attn")


SMALL_DISK = """
import sys
from pathlib import Path
from attnstore.errors import AttnStoreError
from attnstore.format.commit import published
from attnstore.format.verify import verify
from attnstore.job import begin, plan, run
from tests.conftest import arrays_recipe
plan.SEGMENT_TOKENS, begin.SPACE_LEFT, run.SNAPSHOT_SECONDS = 60, -(10**12), 0.0
store, recipe = Path(sys.argv[1]) / "s.attn", arrays_recipe(Path(sys.argv[2]))
try:
    run.ingest(recipe, store)
except AttnStoreError as error:
    print(type(error).__name__, error, sep="|", end="|")
there = published(store, "segments")
print(len(there), verify(store, deep=True) if there else [], sorted(p.name for p in store.rglob(".staging-*")), sep="|")
if there:
    for path in Path(sys.argv[1]).glob("ballast*"):
        path.unlink()
    run.ingest(recipe, store).close()
    print(len(published(store, "segments")), verify(store, deep=True), sep="|")
"""


def on_small_disk(options: str, place: Path, corpus: Path, before: str = "true") -> list[list[str]]:
    """What the script prints with `place` on a disk of its own, which vanishes with the process."""
    mount = f'mount -t tmpfs -o {options} tmpfs "$0" && {before} && exec "$@"'
    command = [
        "unshare",
        "-rm",
        "sh",
        "-c",
        mount,
        str(place),
        sys.executable,
        "-c",
        SMALL_DISK,
        str(place),
        str(corpus),
    ]
    root = str(Path(__file__).parents[2])
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, cwd=root)
    assert result.returncode == 0, result.stderr
    return [line.split("|") for line in result.stdout.splitlines()]


@pytest.fixture(scope="module")
def may_mount(tmp_path_factory: pytest.TempPathFactory) -> None:
    place = tmp_path_factory.mktemp("mount")
    command = ["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", str(place)]
    if not shutil.which("unshare") or subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting a small disk is not allowed here")


def test_a_disk_that_fills_up_keeps_the_finished_segments_and_the_same_command_goes_on(
    tmp_path: Path, may_mount: None
) -> None:
    sentences = ["the old clock stopped and nobody in the house had heard it for a whole week ."] * 20
    corpus = write_arrays(tmp_path / "c", sentences, layers=8, heads=8)
    (tmp_path / "disk").mkdir()
    ballast = f"head -c 1300000 /dev/zero > '{tmp_path}/disk/ballast'"
    (kind, message, n, broken, staged), (total, broken_later) = on_small_disk(
        "size=2m", tmp_path / "disk", corpus, ballast
    )
    assert kind == "NoSpace"
    assert "No space left on device" in message
    assert "run the same command again" in message
    assert f"{n} finished segments are kept" in message
    assert 0 < int(n) < int(total)
    assert broken == broken_later == "[]"
    assert staged == "[]"  # what was begun is cleared away


def test_a_disk_for_reading_only_is_refused(tmp_path: Path, arrays_corpus: Path, may_mount: None) -> None:
    (tmp_path / "disk").mkdir()
    ((kind, message, n, _, _),) = on_small_disk("size=2m,ro", tmp_path / "disk", arrays_corpus)
    assert (kind, n) == ("BadInput", "0")
    assert "Read-only file system" in message
    assert "a folder that can be written" in message
