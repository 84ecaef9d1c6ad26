"""Tests of the stores of every released format version: the current code, and a reader without it, read them alike."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from attnstore.format.verify import verify
from attnstore.format.version import FORMAT
from attnstore.job.refresh import refresh
from attnstore.share.packing import pack
from attnstore.store.contents import read_contents
from attnstore.store.store import open as open_store
from tests.golden.released import FOLDER, QUESTIONS, add, answer, kept_answer, kept_maps
from tests.pages import FENCE, ROOT, text_of
from tests.test_format_page import read_without_attnstore

VERSIONS = sorted(path for path in FOLDER.iterdir() if path.is_dir())
versions = pytest.mark.parametrize("version", VERSIONS, ids=[path.name for path in VERSIONS])


def same(one: str, other: str) -> bool:
    """Whether two cells of an answer are equal, real numbers but for the last of six digits."""
    if one == other:
        return True
    try:
        return float(one) == pytest.approx(float(other), rel=2e-5, abs=1e-12)
    except ValueError:
        return False


def test_the_current_version_is_among_them() -> None:
    assert FORMAT in {path.name for path in VERSIONS}
    assert all(re.fullmatch(r"\d+\.\d+", path.name) for path in VERSIONS)


def test_a_released_version_is_not_made_again(tmp_path: Path) -> None:
    (tmp_path / FORMAT).mkdir()
    assert not add(tmp_path)
    assert list((tmp_path / FORMAT).iterdir()) == []


@versions
@pytest.mark.parametrize("question", QUESTIONS)
def test_the_current_code_gives_the_answers_of_that_time(version: Path, question: str) -> None:
    with open_store(version / "store") as store:
        found, kept = list(answer(store, question)), kept_answer(version, question)
    # A later release may add columns; those of that time stay.
    columns = [found[0].index(name) for name in kept[0]]
    assert len(found) == len(kept) > 1
    for mine, theirs in zip(found[1:], kept[1:], strict=True):
        assert all(same(mine[column], value) for column, value in zip(columns, theirs, strict=True)), (mine, theirs)


@versions
def test_the_current_code_reads_the_maps_of_that_time(version: Path) -> None:
    kept = kept_maps(version)
    with open_store(version / "store") as store:
        names = {row["name"]: row["example"] for row in store.sql("select name, example from examples")}
        assert names.keys() == kept.keys()
        for name, maps in kept.items():
            np.testing.assert_array_equal(store.attention(names[name]).to_numpy(), maps)


@versions
def test_the_reader_of_the_format_page_reads_them_without_attnstore(version: Path, tmp_path: Path) -> None:
    reader = tmp_path / "reader.py"
    section = text_of(ROOT / "docs/format.md").partition("## A reader of its own\n")[2]
    reader.write_text(FENCE.findall(section)[0][1], encoding="utf-8")
    found = read_without_attnstore(reader, version / "store", tmp_path / "read.npz", "encoder")
    kept = kept_maps(version)
    assert found.keys() == {f"{name}/encoder" for name in kept}
    for name, maps in kept.items():
        np.testing.assert_array_equal(found[f"{name}/encoder"], maps)


@versions
def test_a_store_of_that_time_breaks_no_rule(version: Path) -> None:
    assert verify(version / "store", deep=True) == []


@versions
def test_a_tag_of_that_time_names_its_snapshot(version: Path) -> None:
    with open_store(version / "store", tag="ingested") as before, open_store(version / "store") as now:
        assert before.snapshot.number < now.snapshot.number
        assert before.info == now.info


@versions
def test_a_store_of_that_time_can_be_written_to_and_packed(version: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(version / "store", tmp_path / "s")
    refresh(copy, "token_masses", {})
    with open_store(copy) as store:
        (found,) = store.sql("select (select count(*) from token_masses) n, sum(n_tokens) * 6 tokens from examples")
        assert found["n"] == found["tokens"]
    assert verify(copy) == []
    pack(read_contents(copy), tmp_path / "s.zip")
    with open_store(tmp_path / "s.zip") as store, open_store(version / "store") as there:
        np.testing.assert_array_equal(store.attention(0).to_numpy(), there.attention(0).to_numpy())
