"""This file tests stores in buckets on a real S3 server: sent, opened, asked, copied back; at once and interrupted."""

import json
import os
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("obstore")

import obstore

from attnstore.errors import BadInput, Damaged, NotAStore, NotFound
from attnstore.format.bucket import bucket
from attnstore.format.commit import content_hash, describe, latest
from attnstore.format.manifest import Reference, Snapshot, Unit, read_snapshot
from attnstore.format.remote import Remote
from attnstore.format.verify import verify
from attnstore.job.refresh import refresh
from attnstore.job.run import ingest
from attnstore.share.pulling import pull
from attnstore.share.pushing import blocks, push
from attnstore.share.tags import tag
from attnstore.share.to_bucket import PART, PARTS, publish
from attnstore.store.store import open as open_store
from tests.cli.running import good, invoke
from tests.conftest import SENTENCES, arrays_recipe, write_arrays
from tests.serve.running import serving
from tests.share.fault_proxy import between
from tests.share.s3_server import make_bucket, s3_url

__all__ = ["s3_url"]
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("s3")]


@pytest.fixture(autouse=True)
def environment(s3_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server as users name it, no key, and an empty cache for every test."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3_url)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("ATTNSTORE_CACHE", str(tmp_path / "cache"))
    make_bucket(s3_url, "stores")


@pytest.fixture
def address(request: pytest.FixtureRequest) -> str:
    """A place in the bucket that no other test uses."""
    return f"s3://stores/{request.node.name.split('[')[0]}/own.attn"


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of another corpus."""
    folder = tmp_path_factory.mktemp("other")
    ingest(arrays_recipe(write_arrays(folder / "corpus", SENTENCES[:3], seed=5)), folder / "other.attn").close()
    return folder / "other.attn"


@pytest.fixture
def own(tiny_store: Path, tmp_path: Path) -> Path:
    """A copy of the tiny store with a second snapshot: 1 is tagged `paper`, 2 has an addition."""
    shutil.copytree(tiny_store, tmp_path / "own.attn")
    tag(tmp_path / "own.attn", "paper", 1)
    refresh(tmp_path / "own.attn", "head_facts", {"eps": "0.01"})
    return tmp_path / "own.attn"


def keys(address: str) -> list[str]:
    return sorted(str(one["path"]) for chunk in obstore.list(bucket(address)) for one in chunk)


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_store_that_was_sent_answers_from_the_bucket_as_its_folder_does(own: Path, address: str) -> None:
    done = push(own, address)
    with open_store(address) as remote, open_store(own) as local:
        assert done.content_hash == remote.snapshot.content_hash == local.snapshot.content_hash
        for question in ("relations/best", "heads/entropy", "heads/distance"):
            mine, theirs = (store.ask(question) for store in (remote, local))
            assert mine.to_arrow().equals(theirs.to_arrow())
            assert mine.cite() == theirs.cite()
        text = "select layer, head, example, sum(weight) s from attention group by all order by all"
        assert remote.sql(text).to_arrow().equals(local.sql(text).to_arrow())
        for options in ({}, {"layer": 1, "head": 2}, {"layer": [0], "level": "word"}):
            np.testing.assert_array_equal(
                remote.attention(2, **options).to_numpy(), local.attention(2, **options).to_numpy()
            )


def test_the_newest_snapshot_is_opened_or_that_of_a_number_a_tag_or_a_hash(own: Path, address: str) -> None:
    push(own, address, tag="paper")
    assert "tags/paper.json" in keys(address)
    assert push(own, address).snapshot == 2
    hashes = {number: latest(own, number).content_hash for number in (1, 2)}
    assert hashes[1] != hashes[2]
    for options, number in (({}, 2), ({"snapshot": 1}, 1), ({"tag": "paper"}, 1), ({"expect": hashes[2][:12]}, 2)):
        with open_store(address, **options) as store:
            assert (store.snapshot.number, store.snapshot.content_hash) == (number, hashes[number])
    with pytest.raises(NotFound, match="no tag 'other'; expected one of paper"):
        open_store(address, tag="other")
    with pytest.raises(NotFound, match="no snapshot 3"):
        open_store(address, snapshot=3)
    with pytest.raises(Damaged, match="has the content hash"):
        open_store(address, expect=hashes[1])


def test_a_stock_question_fetches_the_tables_it_needs_and_a_map_one_range_a_layer(
    own: Path, address: str, s3_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    push(own, address)
    with between(s3_url) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.url)
        with open_store(address) as store:
            opening = proxy.taken()
            assert len(opening) == 3  # the list of snapshots, store.json, the newest snapshot
            store.ask("relations/best", min_count=1)
            asked = [one.path.partition("?")[0].partition("own.attn/")[2] for one in proxy.taken()]
            tables = [path for path in asked if path.endswith(".parquet")]
            assert tables
            assert len(tables) == len(set(tables))
            all_tables = [path for path in files(own) if path.endswith(".parquet")]
            assert set(tables) < set(all_tables)
            assert not [path for path in asked if "/c/" in path]
            store.attention(2, layer=1, head=2)
            ranges = [one for one in proxy.taken() if "/c/" in one.path]
            assert {one.path.partition("/c/")[2] for one in ranges} == {"1/0/0"}
            assert len(ranges) <= 2  # where its chunks lie, and the chunk
            store.attention(2)
            ranges = [one for one in proxy.taken() if "/c/" in one.path]
            assert {one.path.partition("/c/")[2] for one in ranges} == {"0/0/0", "1/0/0"}
            assert len(ranges) <= 3
            total = sum(path.stat().st_size for path in own.rglob("*") if path.is_file())
            assert sum(one.sent for one in ranges) < total


def test_a_store_that_is_there_is_not_sent_again(own: Path, address: str, s3_url: str) -> None:
    first = push(own, address)
    assert (first.kept, first.sent_bytes) == (0, sum(file.bytes for unit in _units(own) for file in unit.files))
    again = push(own, address)
    assert (again.sent, again.sent_bytes, again.snapshot) == (0, 0, first.snapshot)
    assert not [key for key in keys(address) if ".staging-" in key]


def _units(store: Path) -> tuple[Unit, ...]:
    with open_store(store) as opened:
        return opened.contents.units


def test_a_push_that_was_interrupted_sends_only_what_is_missing(
    own: Path, address: str, s3_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    puts = [0]

    def choose(method: str, path: str) -> str | None:
        puts[0] += method == "PUT"
        return "cut" if puts[0] > 9 else None

    with between(s3_url, choose) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.url)
        monkeypatch.setattr("attnstore.format.bucket.RETRIES", 0)
        with pytest.raises(NotFound, match="what is there is not sent anew"):
            push(own, address)
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3_url)
    with pytest.raises(NotAStore, match="no snapshot there"):
        open_store(address)
    before = {key for key in keys(address) if key.endswith(".parquet") or "/c/" in key}
    assert before
    done = push(own, address)
    assert done.kept >= len(before)
    with open_store(address) as store:
        assert store.snapshot.content_hash == latest(own).content_hash


def test_a_file_of_the_same_size_with_other_bytes_is_sent_again(own: Path, address: str) -> None:
    objects = bucket(address)
    path = "segments/000000/examples.parquet"
    right = (own / path).read_bytes()
    obstore.put(objects, path, right[:-1] + b"x", attributes={"sha256": "0" * 64})
    obstore.put(
        objects, "segments/000000/tokens.parquet", bytes((own / path).with_name("tokens.parquet").stat().st_size)
    )
    assert push(own, address).kept == 0
    assert bytes(obstore.get(objects, path).bytes()) == right


def test_a_large_file_goes_in_parts_and_one_that_is_not_what_it_should_be_is_not_there_afterwards(
    address: str, tmp_path: Path
) -> None:
    large = tmp_path / "large"
    large.write_bytes(np.random.default_rng(0).bytes(20 * 2**20))
    objects, file = bucket(address), describe(large, "large")
    obstore.put(objects, "right", blocks(large, file), chunk_size=PART, max_concurrency=PARTS)
    assert bytes(obstore.get(objects, "right").bytes()) == large.read_bytes()
    assert str(obstore.head(objects, "right")["e_tag"]).endswith('-3"')  # joined of three parts
    with pytest.raises(Damaged, match="Run: attnstore verify"):
        obstore.put(objects, "wrong", blocks(large, replace(file, sha256="0" * 64)), chunk_size=PART)
    assert keys(address) == ["right"]


def test_another_store_is_refused_before_anything_is_written(own: Path, other: Path, address: str) -> None:
    push(own, address)
    before = keys(address)
    with pytest.raises(BadInput, match="another store there"):
        push(other, address)
    assert keys(address) == before


def test_another_unit_of_the_same_name_is_refused_before_anything_is_written(
    tiny_store: Path, own: Path, tmp_path: Path, address: str
) -> None:
    shutil.copytree(tiny_store, tmp_path / "twin.attn")
    refresh(tmp_path / "twin.attn", "head_facts", {"eps": "0.02"})
    names = [{path.name for path in (store / "additions").iterdir()} for store in (own, tmp_path / "twin.attn")]
    assert names[0] == names[1]
    push(own, address)
    before = {key: bytes(obstore.get(bucket(address), key).bytes()) for key in keys(address)}
    with pytest.raises(BadInput, match=r"another additions/\S*/addition.json there"):
        push(tmp_path / "twin.attn", address)
    assert {key: bytes(obstore.get(bucket(address), key).bytes()) for key in keys(address)} == before


def test_a_snapshot_whose_number_is_taken_gets_the_next_one(
    tiny_store: Path, own: Path, tmp_path: Path, address: str
) -> None:
    shutil.copytree(tiny_store, tmp_path / "twin.attn")
    refresh(tmp_path / "twin.attn", "head_distances", {"sampled": "0"})
    names = [{path.name for path in (store / "additions").iterdir()} for store in (own, tmp_path / "twin.attn")]
    assert not names[0] & names[1]
    tag(tmp_path / "twin.attn", "twin", 2)
    assert push(own, address).snapshot == 2
    assert push(tmp_path / "twin.attn", address).snapshot == 3
    assert push(tmp_path / "twin.attn", address).snapshot == 3
    with open_store(address, tag="twin") as store:
        assert store.snapshot.number == 3
        assert store.snapshot.parent == 2
        assert store.snapshot.content_hash == latest(tmp_path / "twin.attn").content_hash


def test_a_tag_that_names_another_snapshot_there_stays_as_it_is(own: Path, address: str) -> None:
    push(own, address, tag="paper")
    tag(own, "paper", 2, move=True)
    done = push(own, address)
    assert done.other_tags == ("paper",)
    with open_store(address, tag="paper") as store:
        assert store.snapshot.number == 1


def test_two_who_send_the_same_at_once_end_with_one_snapshot(own: Path, address: str) -> None:
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: push(own, address), range(2))
    assert first.snapshot == second.snapshot == 2
    assert [key for key in keys(address) if key.startswith("snapshots/")] == ["snapshots/00000002.json"]
    with open_store(address) as store, open_store(own) as local:
        assert store.ask("heads/entropy").to_arrow().equals(local.ask("heads/entropy").to_arrow())


def test_a_claim_of_another_writer_keeps_its_unit_for_it(own: Path, address: str) -> None:
    objects = bucket(address)
    obstore.put(objects, "segments/.staging-000000", b"0" * 64)
    with pytest.raises(BadInput, match=r"another segments/000000/segment.json is being sent there.*remove s3://"):
        push(own, address)
    assert keys(address) == ["segments/.staging-000000", "store.json"]
    obstore.delete(objects, "segments/.staging-000000")
    assert push(own, address).snapshot == 2


def test_eight_who_commit_at_once_lose_and_repeat_no_snapshot(own: Path, address: str) -> None:
    commits, base = 50, latest(own)
    barrier = threading.Barrier(8)

    def work(writer: int) -> None:
        objects = bucket(address)
        barrier.wait()
        for commit in range(commits):
            publish(objects, address, made(base, writer * commits + commit))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    found = history(address)
    assert [one.number for one in found] == list(range(2, 2 + 8 * commits))
    assert [one.parent for one in found][1:] == [one.number for one in found][:-1]
    assert {one.content_hash for one in found} == {made(base, number).content_hash for number in range(8 * commits)}


def made(base: Snapshot, number: int) -> Snapshot:
    """A snapshot of its own content."""
    additions = (*base.additions, Reference(f"made-{number}", f"{number:064x}"))
    return replace(base, additions=additions, content_hash=content_hash((*base.segments, *additions)))


def history(address: str) -> list[Snapshot]:
    """Every snapshot in the bucket, in order."""
    objects = bucket(address)
    paths = [key for key in keys(address) if key.startswith("snapshots/")]
    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(lambda path: read_snapshot(Remote(f"{address}/{path}", objects, path)), paths))


def test_a_store_is_copied_back_whole(own: Path, address: str, tmp_path: Path) -> None:
    (own / "README.md").write_text("# Mine\n")
    tag(own, "second", 2)
    push(own, address)
    done = pull(address, tmp_path / "back.attn")
    assert done.content_hash == latest(own).content_hash
    assert verify(tmp_path / "back.attn", deep=True) == []
    theirs, mine = files(own), files(tmp_path / "back.attn")
    assert set(theirs) - set(mine) == {"snapshots/00000001.json", "tags/paper.json"}
    assert {name: theirs[name] for name in mine} == mine
    again = pull(address, tmp_path / "back.attn")
    assert (again.fetched, again.kept) == (0, done.fetched)


def test_a_pull_that_was_interrupted_keeps_what_is_right(
    own: Path, address: str, tmp_path: Path, s3_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    push(own, address)
    monkeypatch.setattr("attnstore.format.bucket.RETRIES", 0)

    def choose(method: str, path: str) -> str | None:
        return "cut" if "words.parquet" in path else None

    with between(s3_url, choose) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.url)
        with pytest.raises(NotFound):
            pull(address, tmp_path / "back.attn")
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3_url)
    (left,) = (tmp_path / "back.attn" / "segments").iterdir()
    whole = [name for name, data in files(left).items() if (own / "segments/000000" / name).read_bytes() == data]
    assert whole
    done = pull(address, tmp_path / "back.attn")
    assert done.kept == len(whole)
    assert [path.name for path in (tmp_path / "back.attn" / "segments").iterdir()] == ["000000"]
    assert verify(tmp_path / "back.attn") == []


def test_a_pull_names_what_is_damaged_there_and_here(own: Path, address: str, tmp_path: Path) -> None:
    push(own, address)
    path = "segments/000000/tokens.parquet"
    good_bytes = (own / path).read_bytes()
    obstore.put(bucket(address), path, good_bytes[:-9] + bytes(9))
    with pytest.raises(Damaged, match=r"tokens.parquet: sha256"):
        pull(address, tmp_path / "back.attn")
    assert not (tmp_path / "back.attn/snapshots").exists()
    obstore.put(bucket(address), path, good_bytes)
    pull(address, tmp_path / "back.attn")
    (tmp_path / "back.attn" / path).write_bytes(bytes(len(good_bytes)))
    with pytest.raises(Damaged, match=r"tokens.parquet: other bytes.*Remove"):
        pull(address, tmp_path / "back.attn")


def test_a_pull_writes_into_no_folder_of_something_else(own: Path, other: Path, address: str, tmp_path: Path) -> None:
    push(own, address)
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters/one.txt").write_text("Dear")
    before = files(other)
    for place, match in ((tmp_path / "letters", "a folder of something else"), (other, "another store there")):
        with pytest.raises(BadInput, match=match):
            pull(address, place)
    with pytest.raises(BadInput, match="a file"):
        pull(address, tmp_path / "letters/one.txt")
    assert files(other) == before
    assert files(tmp_path / "letters") == {"one.txt": b"Dear"}


def test_a_store_is_copied_from_a_service_as_well(own: Path, tmp_path: Path) -> None:
    with serving(f"own={own}", "--workers", "1") as running:
        pull(f"{running.url}/stores/own", tmp_path / "back.attn")
    assert verify(tmp_path / "back.attn", deep=True) == []
    assert latest(tmp_path / "back.attn").content_hash == latest(own).content_hash


def test_the_commands_say_what_was_sent_and_fetched(own: Path, address: str, tmp_path: Path) -> None:
    pinned = latest(own).content_hash[:16]
    told = good("push", str(own), address).stderr
    assert "No licence is stated" in told
    assert f"snapshot 2, content {pinned}" in told
    told = good("pull", address, str(tmp_path / "back.attn"), "--expect", pinned).stderr
    assert f"snapshot 2, content {pinned}" in told
    assert " 0 there already" in told
    assert good("verify", str(tmp_path / "back.attn")).stderr.endswith("no rules broken\n")
    wrong = invoke("push", str(own), "https://somewhere.example/x")
    assert wrong.exit_code != 0


ELSEWHERE = """
import sys, json
sys.modules.update(torch=None, transformers=None)
import attnstore
with attnstore.open(sys.argv[1]) as store:
    answer = store.ask("relations/best", min_count=1)
    print(json.dumps([store.snapshot.content_hash, answer.to_arrow().to_pylist(), answer.cite()], default=str))
"""


def test_where_no_model_library_is_the_answers_and_hashes_are_the_same(own: Path, address: str) -> None:
    push(own, address)
    found = []
    for place in (address, str(own)):
        done = subprocess.run(
            [sys.executable, "-c", ELSEWHERE, place], capture_output=True, text=True, check=False, timeout=120
        )
        assert done.returncode == 0, done.stderr
        found.append(json.loads(done.stdout))
    assert found[0] == found[1]
    assert found[0][1]


@pytest.mark.parametrize(
    ("address", "error", "match"),
    [
        ("s3://nobody/here", NotAStore, "no answer|refuses"),
        ("s3://stores/nothing", NotAStore, "no snapshot there"),
        ("s3://", BadInput, "no folder in a bucket"),
        ("s3://stores/a/../b", BadInput, "no folder in a bucket"),
        ("s3://key:secret@stores/a", BadInput, "a key in it"),
    ],
)
def test_an_address_that_leads_nowhere_is_refused(address: str, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match) as caught:
        open_store(address)
    assert "secret" not in str(caught.value)


def test_a_server_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setattr("attnstore.format.bucket.RETRIES", 0)
    with pytest.raises(NotAStore, match="no answer"):
        open_store("s3://stores/any")
