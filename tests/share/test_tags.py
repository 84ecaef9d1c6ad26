"""A tag names one snapshot until it is moved or deleted on purpose."""

import json
import shutil
from pathlib import Path

import pytest

import attnstore
from attnstore.errors import BadInput, Damaged, NotAStore, NotFound
from attnstore.format import commit as commit_module
from attnstore.format.commit import commit, latest
from attnstore.share import tags as tags_module
from attnstore.share.tags import Tag, tag, tags, untag
from tests.cli.running import good, invoke, rows
from tests.survival.committing import publish_one


@pytest.fixture
def store(tiny_store: Path, tmp_path: Path) -> Path:
    """A store with two snapshots."""
    root = Path(shutil.copytree(tiny_store, tmp_path / "s.attn"))
    publish_one(root, 0, 0)
    assert commit(root, latest(root).store_id).number == 2
    return root


def test_a_tag_opens_the_snapshot_that_it_names_when_there_are_newer_ones(store: Path) -> None:
    made = tag(store, "paper", 1)
    assert made == Tag("paper", 1, latest(store, 1).content_hash, latest(store, 1).time)
    with attnstore.open(store, tag="paper") as opened:
        assert opened.snapshot.number == 1
    assert json.loads((store / "tags/paper.json").read_bytes()) == {"snapshot": 1, "content_hash": made.content_hash}


def test_the_newest_snapshot_is_tagged_where_none_is_named(store: Path) -> None:
    assert tag(store, "talk").snapshot == 2


def test_a_tag_is_moved_only_on_purpose(store: Path) -> None:
    tag(store, "paper", 1)
    assert tag(store, "paper", 1).snapshot == 1
    with pytest.raises(BadInput, match=r"'paper' names snapshot 1; expected a new name\. .*--move"):
        tag(store, "paper", 2)
    assert tags(store)[0].snapshot == 1
    assert tag(store, "paper", 2, move=True).snapshot == 2
    assert [path.name for path in (store / "tags").iterdir()] == ["paper.json"]


def test_a_snapshot_that_is_not_there_is_not_tagged(store: Path) -> None:
    with pytest.raises(NotFound, match="no snapshot 7; expected one of 1 to 2"):
        tag(store, "paper", 7)
    assert tags(store) == []


@pytest.mark.parametrize("name", ["../paper", "Paper", "", ".staging-x", "a/b", "a b"])
def test_a_name_that_is_no_file_of_the_store_is_refused(store: Path, name: str) -> None:
    before = sorted(store.rglob("*"))
    for act in (tag, untag):
        with pytest.raises(BadInput, match="the name"):
            act(store, name)
    assert sorted(store.rglob("*")) == before


def test_a_snapshot_that_goes_while_it_is_tagged_is_an_error(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = commit_module.os.link

    def late(*args: str, **keys: str) -> None:
        real(*args, **keys)
        (store / "snapshots/00000001.json").unlink()

    monkeypatch.setattr(commit_module.os, "link", late)
    with pytest.raises(NotFound, match="snapshot 1 was collected meanwhile"):
        tag(store, "paper", 1)
    assert tags(store) == []


def test_a_tag_that_was_cut_short_while_it_moved_is_the_old_one(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tag(store, "paper", 1)

    def full(path: Path, data: bytes) -> None:
        path.write_bytes(data[:5])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tags_module, "write", full)
    with pytest.raises(OSError, match="No space"):
        tag(store, "paper", 2, move=True)
    assert [(one.name, one.snapshot) for one in tags(store)] == [("paper", 1)]


def test_what_a_deleted_tag_named_is_told_and_an_unknown_one_names_the_known(store: Path) -> None:
    tag(store, "paper", 1)
    with pytest.raises(NotFound, match="no tag 'talk'; expected one of paper"):
        untag(store, "talk")
    assert untag(store, "paper").snapshot == 1
    assert tags(store) == []
    with pytest.raises(NotFound, match="a tag; it has none"):
        untag(store, "paper")


def test_a_tag_of_a_snapshot_that_is_gone_is_listed_without_hash(store: Path) -> None:
    tag(store, "paper", 1)
    (store / "snapshots/00000001.json").unlink()
    assert tags(store) == [Tag("paper", 1, None, None)]


def test_a_tag_that_names_nothing_is_damage(store: Path) -> None:
    (store / "tags").mkdir()
    (store / "tags/paper.json").write_text('{"snapshot": "1"}')
    with pytest.raises(Damaged, match=r"paper\.json: snapshot '1'; expected the number of a snapshot"):
        tags(store)


def test_a_folder_that_is_no_store_gets_no_tag(tmp_path: Path) -> None:
    with pytest.raises(NotAStore):
        tag(tmp_path, "paper")
    assert list(tmp_path.iterdir()) == []


def test_the_command_tags_lists_moves_and_deletes(store: Path) -> None:
    assert "paper names snapshot 1, content" in good("tag", store, "paper", "--snapshot", "1").stderr
    assert invoke("tag", store, "paper").exception is not None
    good("tag", store, "paper", "--move")
    newest = latest(store)
    listed = [{"name": "paper", "snapshot": 2, "content_hash": newest.content_hash, "time": newest.time}]
    assert rows("tag", store, "--list") == rows("tag", store) == listed
    assert "paper no longer names snapshot 2" in good("tag", store, "paper", "--delete").stderr
    assert rows("tag", store) == []


@pytest.mark.parametrize("words", [("paper", "--list"), ("--delete",), ("paper", "--delete", "--move")])
def test_words_that_contradict_each_other_are_wrong_usage(store: Path, words: tuple[str, ...]) -> None:
    assert invoke("tag", store, *words).exit_code == 2
    assert tags(store) == []
