"""This file tests stores on the Hugging Face Hub, by its own client and a small server that speaks its HTTP API."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("huggingface_hub")
pytest.importorskip("obstore")

from huggingface_hub import constants

from attnstore.errors import BadInput, NotAStore, NotFound
from attnstore.format.commit import latest
from attnstore.format.hub import HubPlace, hub_place
from attnstore.format.verify import verify
from attnstore.job.refresh import refresh
from attnstore.share.pulling import pull
from attnstore.share.pushing import push
from attnstore.share.tags import tag
from attnstore.store.store import open as open_store
from tests.cli.running import good
from tests.share.hub_server import Hub, hub_running

# The client sends large files in a way that the library below it warns of.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")]

ADDRESS = "hf://datasets/lab/gum"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """An empty Hub, with Xet off, which the stand-in does not speak; and an empty cache."""
    with hub_running() as running:
        monkeypatch.setenv("HF_ENDPOINT", running.url)
        monkeypatch.setenv("HF_TOKEN", "hf_a_token_of_the_test")
        monkeypatch.setenv("ATTNSTORE_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setattr("attnstore.format.hub.RETRIES", 0)
        yield running


@pytest.fixture
def own(tiny_store: Path, tmp_path: Path) -> Path:
    """A copy of the tiny store with a second snapshot: 1 is tagged `paper`, 2 has an addition."""
    shutil.copytree(tiny_store, tmp_path / "own.attn")
    tag(tmp_path / "own.attn", "paper", 1)
    refresh(tmp_path / "own.attn", "head_facts", {"eps": "0.01"})
    return tmp_path / "own.attn"


def test_a_store_that_was_sent_answers_from_the_hub_as_its_folder_does(own: Path, hub: Hub) -> None:
    done = push(own, ADDRESS)
    assert done.revision == hub.branches["lab/gum"]["main"]
    with open_store(ADDRESS) as remote, open_store(own) as local:
        assert done.content_hash == remote.snapshot.content_hash == local.snapshot.content_hash
        for question in ("relations/best", "heads/entropy"):
            mine, theirs = (store.ask(question) for store in (remote, local))
            assert mine.to_arrow().equals(theirs.to_arrow())
            assert mine.cite() == theirs.cite()
        np.testing.assert_array_equal(remote.attention(2).to_numpy(), local.attention(2).to_numpy())


def test_a_token_goes_to_the_hub_and_not_to_where_it_sends_on(own: Path, hub: Hub) -> None:
    push(own, ADDRESS)
    hub.tokens.clear()
    with open_store(ADDRESS) as store:
        store.attention(2)
    sent = {place: {token for where, token in hub.tokens if where == place} for place in ("hub", "cdn")}
    assert sent == {"hub": {"Bearer hf_a_token_of_the_test"}, "cdn": {None}}


def test_a_question_fetches_the_tables_it_needs_and_a_map_one_range_a_layer(own: Path, hub: Hub) -> None:
    push(own, ADDRESS)
    hub.taken()
    with open_store(ADDRESS) as store:
        # The commit, its list of snapshots, store.json and the newest snapshot, of which large ones take two steps.
        assert len(hub.taken()) <= 6
        store.ask("relations/best", min_count=1)
        asked = [path for _, path, status, _ in hub.taken() if status == 302]
        tables = [path for path in asked if path.endswith(".parquet")]
        assert tables
        assert len(tables) == len(set(tables)) < len(list(own.rglob("*.parquet")))
        assert not [path for path in asked if "/c/" in path]
        store.attention(2, layer=1, head=2)
        asked = [path.partition("/c/")[2] for _, path, status, _ in hub.taken() if "/c/" in path]
        assert set(asked) == {"1/0/0"}
        assert len(asked) <= 2


def test_what_is_there_is_not_sent_again_and_the_snapshot_comes_last(own: Path, hub: Hub) -> None:
    push(own, ADDRESS)
    assert not any("snapshots/00000002.json" in tree for _, tree in hub.repositories["lab/gum"][:-1])
    commits = len(hub.repositories["lab/gum"])
    hub.taken()
    again = push(own, ADDRESS)
    assert (again.sent, again.sent_bytes) == (0, 0)
    assert len(hub.repositories["lab/gum"]) == commits
    assert not [path for method, path, _, _ in hub.taken() if method == "PUT" or path.endswith("batch")]


def test_a_push_that_was_interrupted_goes_on(own: Path, hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("attnstore.share.to_hub.FILES", 5)
    real = Hub.commit

    def commit(self: Hub, repository: str, tree: dict[str, bytes]) -> str:
        made = real(self, repository, tree)
        if len(self.repositories[repository]) == 3:
            self.refuse.append("POST /api/datasets/lab/gum/commit")
        return made

    monkeypatch.setattr(Hub, "commit", commit)
    with pytest.raises(NotFound, match="500"):
        push(own, ADDRESS)
    hub.refuse.clear()
    with pytest.raises(NotAStore, match="no snapshot there"):
        open_store(ADDRESS)
    done = push(own, ADDRESS)
    assert done.kept > 5
    with open_store(ADDRESS) as store:
        assert store.snapshot.content_hash == latest(own).content_hash


def test_a_commit_that_comes_between_is_looked_at(own: Path, hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    real, rivals = Hub.tree, iter([True])

    def tree(self: Hub, repository: str, revision: str) -> "tuple[str, dict[str, bytes]] | None":
        found = real(self, repository, revision)
        if revision == "main" and found is not None and self.lock.locked() and next(rivals, False):
            found = found[0], {**found[1], "rival.txt": b"mine"}
            return self.commit(repository, found[1]), found[1]
        return found

    monkeypatch.setattr(Hub, "tree", tree)
    push(own, ADDRESS)
    assert [status for _, path, status, _ in hub.taken() if "/commit/" in path].count(412) == 1
    found = hub.tree("lab/gum", "main")
    assert found is not None
    assert found[1]["rival.txt"] == b"mine"
    with open_store(ADDRESS) as store:
        assert store.snapshot.content_hash == latest(own).content_hash


def test_another_store_or_unit_is_refused_before_anything_is_written(
    tiny_store: Path, own: Path, hub: Hub, tmp_path: Path, make_store: Callable[..., Path]
) -> None:
    shutil.copytree(tiny_store, tmp_path / "twin.attn")
    refresh(tmp_path / "twin.attn", "head_facts", {"eps": "0.02"})
    push(own, ADDRESS)
    commits = len(hub.repositories["lab/gum"])
    with pytest.raises(BadInput, match=r"another additions/\S*/addition.json there"):
        push(tmp_path / "twin.attn", ADDRESS)
    with pytest.raises(BadInput, match="another store there"):
        push(make_store("exact.attn", keep__precision="exact"), ADDRESS)
    assert len(hub.repositories["lab/gum"]) == commits


def test_a_revision_a_folder_a_snapshot_and_a_tag_are_found(own: Path, hub: Hub) -> None:
    first = push(own, f"{ADDRESS}/deep/own.attn", tag="paper")
    push(own, f"{ADDRESS}/deep/own.attn")
    for address, options, number in (
        (f"{ADDRESS}/deep/own.attn", {}, 2),
        (f"{ADDRESS}@main/deep/own.attn", {"tag": "paper"}, 1),
        (f"{ADDRESS}@{first.revision}/deep/own.attn", {}, 1),
        (f"{ADDRESS}/deep/own.attn/", {"snapshot": 1}, 1),
    ):
        with open_store(address, **options) as store:
            assert store.snapshot.number == number
            store.ask("heads/entropy")


def test_a_store_is_copied_back_whole(own: Path, hub: Hub, tmp_path: Path) -> None:
    (own / "README.md").write_text("---\nlicense: cc-by-4.0\n---\n# Mine\n")
    told = good("push", str(own), ADDRESS).stderr
    assert f"commit {hub.branches['lab/gum']['main']}" in told
    pull(ADDRESS, tmp_path / "back.attn")
    assert verify(tmp_path / "back.attn", deep=True) == []
    assert (tmp_path / "back.attn/README.md").read_text() == (own / "README.md").read_text()
    assert latest(tmp_path / "back.attn").content_hash == latest(own).content_hash


def test_what_is_read_stays_at_the_commit_that_was_opened(own: Path, hub: Hub) -> None:
    push(own, ADDRESS)
    with open_store(ADDRESS) as store:
        hub.commit("lab/gum", {"README.md": b"gone"})
        assert store.ask("heads/entropy").to_arrow().num_rows
    with pytest.raises(NotAStore, match="no snapshot there"):
        open_store(ADDRESS)


@pytest.mark.parametrize(
    ("address", "error", "match"),
    [
        ("hf://datasets/lab/nothing", NotAStore, "no such data set"),
        ("hf://datasets/lab/gum@never", NotAStore, "no such revision"),
        ("hf://lab/gum", BadInput, "no data set"),
        ("hf://datasets/lab", BadInput, "no data set"),
        ("hf://datasets/lab/gum/../x", BadInput, "no data set"),
    ],
)
def test_an_address_that_leads_nowhere_is_refused(hub: Hub, address: str, error: type[Exception], match: str) -> None:
    hub.commit("lab/gum", {})
    with pytest.raises(error, match=match):
        open_store(address)


def test_an_address_names_data_set_revision_and_folder() -> None:
    for address, place in (
        ("hf://datasets/a/b", HubPlace("a/b", None, "")),
        ("hf://datasets/a/b/c/d.attn/", HubPlace("a/b", None, "c/d.attn")),
        ("hf://datasets/a/b@v1/c", HubPlace("a/b", "v1", "c")),
        ("hf://datasets/a/b@refs/pr/3/c", HubPlace("a/b", "refs/pr/3", "c")),
        ("hf://datasets/a/b@one%2Ftwo", HubPlace("a/b", "one/two", "")),
    ):
        assert hub_place(address) == place
