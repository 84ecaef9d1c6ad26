"""Tests of stores behind an address, on a real server: the answers of the folder, and what is fetched for them."""

import io
import json
import os
import shutil
import socket
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("obstore")

import httpx
from obstore.store import HTTPStore

from attnstore.errors import BadInput, Damaged, NotAStore, NotFound
from attnstore.format.address import ABOUT_BYTES, is_address
from attnstore.format.arrays import read_cells
from attnstore.format.cache import Cache
from attnstore.format.manifest import File
from attnstore.format.remote import Remote
from attnstore.format.shard_source import GAP, SPAN, joined_spans
from attnstore.format.shards import Shards
from attnstore.job.run import ingest
from attnstore.store.comparison import compare
from attnstore.store.store import Store
from attnstore.store.store import open as open_store
from tests.cli.running import good, invoke, rows
from tests.conftest import SENTENCES, arrays_recipe, write_arrays
from tests.serve.running import Running, serving
from tests.store.proxy import Proxy, counted
from tests.test_bad_stores import hash_spoilt

pytestmark = pytest.mark.slow

TOKEN = "a token that is long enough for a test"


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of the same sentences with other maps."""
    folder = tmp_path_factory.mktemp("other")
    ingest(arrays_recipe(write_arrays(folder / "corpus", SENTENCES, seed=5)), folder / "other.attn").close()
    return folder / "other.attn"


@pytest.fixture(scope="module")
def spoilt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A third store, which tests damage while it is served."""
    folder = tmp_path_factory.mktemp("spoilt")
    ingest(arrays_recipe(write_arrays(folder / "corpus", SENTENCES, seed=6)), folder / "spoilt.attn").close()
    return folder / "spoilt.attn"


@pytest.fixture(scope="module")
def server(tiny_store: Path, other: Path, spoilt: Path) -> Iterator[Running]:
    with serving(f"tiny={tiny_store}", f"other={other}", f"spoilt={spoilt}", "--workers", "1") as running:
        yield running


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache for every test, and no token."""
    monkeypatch.setenv("ATTNSTORE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("ATTNSTORE_TOKEN", raising=False)
    return tmp_path / "cache"


@pytest.fixture
def proxy(server: Running) -> Iterator[Proxy]:
    with counted(server.url) as found:
        yield found


@pytest.fixture
def remote(server: Running) -> Iterator[Store]:
    with open_store(f"{server.url}/stores/tiny") as store:
        yield store


@pytest.fixture
def local(tiny_store: Path) -> Iterator[Store]:
    with open_store(tiny_store) as store:
        yield store


def kept(cache: Path) -> list[Path]:
    return sorted(path for path in cache.rglob("*") if path.is_file())


def flip(path: Path, at: int) -> None:
    """Change one byte of a file in place."""
    data = bytearray(path.read_bytes())
    data[at] ^= 0xFF
    path.write_bytes(bytes(data))


def test_a_store_behind_an_address_answers_as_its_folder_does(remote: Store, local: Store) -> None:
    assert remote.snapshot == local.snapshot
    assert remote.info == local.info
    assert remote.tables == local.tables
    assert (
        remote.ask("relations/best", min_count=1).to_arrow().equals(local.ask("relations/best", min_count=1).to_arrow())
    )
    where = {"where": "n_tokens < 9"}
    for question in ("heads/entropy", "heads/distance"):
        mine, theirs = (store.ask(question, **where).to_arrow() for store in (remote, local))
        assert mine.equals(theirs)
    text = "select layer, head, example, sum(weight) s from attention group by all order by all"
    assert remote.sql(text).to_arrow().equals(local.sql(text).to_arrow())
    assert remote.ask("relations/best", min_count=1).cite() == local.ask("relations/best", min_count=1).cite()


def test_its_maps_are_the_same_whole_and_in_parts(remote: Store, local: Store) -> None:
    for options in ({}, {"layer": 1, "head": 2}, {"layer": [0], "level": "word"}, {"head": 1, "specials": False}):
        mine, theirs = remote.attention(2, **options), local.attention(2, **options)
        np.testing.assert_array_equal(mine.to_numpy(), theirs.to_numpy())
        assert mine.queries == theirs.queries
    for (number, mine_of), (same, theirs_of) in zip(remote.head_maps(1, 0), local.head_maps(1, 0), strict=True):
        assert number == same
        np.testing.assert_array_equal(mine_of, theirs_of)


def test_every_address_of_a_store_leads_to_it(server: Running, local: Store) -> None:
    key = local.snapshot.content_hash
    for path in (
        "/stores/tiny",
        "/stores/tiny/",
        "/stores/tiny/heads/1/0?kind=encoder",
        "/v1/stores/tiny",
        f"/files/{key[:16]}/",
        f"/files/{key[:16]}",
        f"/files/{key}",
    ):
        with open_store(server.url + path) as store:
            assert store.snapshot.content_hash == key


def test_its_address_stands_where_the_folder_of_another_does(remote: Store, server: Running) -> None:
    address = f"{server.url}/stores/tiny"
    assert str(remote.path) == address
    assert remote.summary()["path"] == address
    assert address in repr(remote)
    with pytest.raises(NotFound, match=f"reading {address}"):
        remote.checked_kind("decoder")
    with pytest.raises(BadInput, match="Copy it here first"):
        _ = remote.contents.folder


def test_a_folder_and_an_address_can_be_compared(server: Running, tiny_store: Path, other: Path) -> None:
    with compare(tiny_store, other) as both:
        wanted = both.ask("compare/cosine").to_arrow()
    with compare(tiny_store, f"{server.url}/stores/other") as both:
        assert both.ask("compare/cosine").to_arrow().equals(wanted)


def test_opening_asks_three_times_and_a_question_fetches_its_tables_whole(proxy: Proxy) -> None:
    with open_store(f"{proxy.url}/stores/tiny") as store:
        opening = proxy.taken()
        assert [path.rpartition("/")[2] for path, *_ in opening] == ["tiny", "store.json", "00000001.json"]
        store.ask("relations/best", min_count=1)
        fetched = proxy.taken()
        assert sorted({path.rpartition("/")[2] for path, *_ in fetched}) == [
            "examples.parquet",
            "segment.json",
            "word_facts.parquet",
            "words.parquet",
        ]
        assert len(fetched) == 4
        store.ask("relations/best", min_count=1)
        assert proxy.taken() == []


def test_one_map_fetches_an_index_and_one_range_a_shard(proxy: Proxy, local: Store) -> None:
    with open_store(f"{proxy.url}/stores/tiny") as store:
        store.attention(1, layer=0, head=0)  # with it the tables of tokens, and the array's metadata
        assert len([path for path, *_ in proxy.taken() if path.endswith("/c/0/0/0")]) == 2
        store.attention(3, layer=0, head=1)
        (asked,) = proxy.taken()
        chunk = next(file for unit in local.units for file in unit.files if file.path.endswith("/c/0/0/0"))
        assert asked[0].endswith("/c/0/0/0")
        assert asked[1] == 206
        assert asked[2] < chunk.bytes  # a part of the shard
        store.attention(3)
        # Two layers: one of whose index is known; of each the heads' chunks lie side by side.
        assert sorted(path[-7:] for path, *_ in proxy.taken()) == ["c/0/0/0", "c/1/0/0", "c/1/0/0"]


def test_a_second_opening_finds_the_tables_that_the_first_one_fetched(proxy: Proxy, cache: Path) -> None:
    for turn in range(2):
        with open_store(f"{proxy.url}/stores/tiny") as store:
            store.ask("relations/best", min_count=1)
            store.attention(1, layer=0, head=0)
        tables = [path for path, *_ in proxy.taken() if path.endswith(".parquet")]
        assert bool(tables) == (turn == 0)
    assert {path.suffix for path in kept(cache)} == {".parquet"}


def test_a_kept_table_that_was_spoilt_or_dropped_is_fetched_again(server: Running, cache: Path) -> None:
    text = "select count(*) n, sum(n_tokens) s from examples"
    with open_store(f"{server.url}/stores/tiny") as store:
        wanted = store.sql(text).to_arrow()
    (path,) = kept(cache)
    sound = path.read_bytes()
    flip(path, 20)
    with open_store(f"{server.url}/stores/tiny") as store:
        assert store.sql(text).to_arrow().equals(wanted)
        assert path.read_bytes() == sound
        path.unlink()  # as another process may that makes room
        assert store.sql(text).to_arrow().equals(wanted)


def test_the_cache_drops_what_was_not_used_for_the_longest_time(tmp_path: Path, server: Running, local: Store) -> None:
    unit = local.units[0]
    files = sorted((file for file in unit.files if file.path.endswith(".parquet")), key=lambda file: file.bytes)[:4]
    with open_store(f"{server.url}/stores/tiny") as store:
        root = store.path
        assert isinstance(root, Remote)
        for number, file in enumerate(files[:2]):
            first = Cache(tmp_path / "small")
            assert first.fetch(root / unit.folder / file.path, file)
            assert not first.fetch(root / unit.folder / file.path, file)
            os.utime(first.path(file), (number, number))
        second = Cache(tmp_path / "small", sum(file.bytes for file in files[1:3]))
        second.fetch(root / unit.folder / files[2].path, files[2])
        assert [second.path(file).exists() for file in files[:3]] == [False, True, True]
        nothing = Cache(tmp_path / "small", 0)
        nothing.fetch(root / unit.folder / files[3].path, files[3])
        assert kept(tmp_path / "small") == [nothing.path(files[3])]  # it is in use here
        wrong = File(files[0].path, files[0].bytes, "0" * 64, files[0].crc32c)
        with pytest.raises(Damaged, match="sha256"):
            nothing.fetch(root / unit.folder / wrong.path, wrong)
        short = File(files[0].path, files[0].bytes - 1, files[0].sha256, files[0].crc32c)
        with pytest.raises(Damaged, match="bytes"):
            nothing.fetch(root / unit.folder / short.path, short)
        assert kept(tmp_path / "small") == [nothing.path(files[3])]


def test_a_file_that_changed_on_the_servers_disk_is_found_out(server: Running, spoilt: Path) -> None:
    address = f"{server.url}/stores/spoilt"
    words = spoilt / "segments/000000/words.parquet"
    flip(words, words.stat().st_size // 2)
    with open_store(address) as store, pytest.raises(Damaged, match=r"words\.parquet: sha256"):
        store.sql("select * from words")
    flip(words, words.stat().st_size // 2)
    shard = spoilt / "segments/000000/maps.zarr/encoder/c/0/0/0"
    for at, match in ((30, "a chunk that cannot be decoded"), (shard.stat().st_size - 3, "an index that is not as")):
        flip(shard, at)
        with open_store(address) as store, pytest.raises(Damaged, match=match):
            store.attention(0, layer=0)
        flip(shard, at)
    for manifest in ("segments/000000/segment.json", "segments/000000/maps.zarr/encoder/zarr.json"):
        text = (spoilt / manifest).read_text()
        (spoilt / manifest).write_text(text.replace('"', " ", 1))
        with open_store(address) as store, pytest.raises(Damaged, match="sha256"):
            store.attention(0, layer=0)
        (spoilt / manifest).write_text(text)
    with open_store(address) as store:  # nothing that was wrong was kept
        assert store.attention(0, layer=0).shape[0] == 3


def test_a_file_that_is_gone_is_said_to_be_missing(server: Running, local: Store) -> None:
    with open_store(f"{server.url}/stores/tiny") as store:
        root = store.path
        assert isinstance(root, Remote)
        for place in (root / "none.json", root / "segments" / "000009" / "segment.json"):
            with pytest.raises(Damaged, match=f"reading {place}: it is missing"):
                place.read_bytes(100)
        with pytest.raises(Damaged, match="100 at most"):
            (root / "store.json").read_bytes(100)


def test_a_pin_is_held_against_what_the_address_serves(server: Running, local: Store) -> None:
    address = f"{server.url}/stores/tiny"
    with open_store(address, snapshot=1, expect=local.snapshot.content_hash[:12]) as store:
        assert store.snapshot.number == 1
    with pytest.raises(NotFound, match="no snapshot 2; expected one of 1 to 1"):
        open_store(address, snapshot=2)
    with pytest.raises(NotFound, match="no tag 'paper'"):
        open_store(address, tag="paper")
    with pytest.raises(Damaged, match="content hash"):
        open_store(address, expect="0" * 16)


def test_an_address_of_no_store_says_what_to_do(server: Running) -> None:
    with pytest.raises(NotAStore, match="the server shows no such store"):
        open_store(f"{server.url}/stores/none")
    with pytest.raises(NotAStore, match="an address of no store; expected an address such as"):
        open_store(f"{server.url}/")
    with pytest.raises(NotFound, match="no snapshot 0123456789abcdef"):
        open_store(f"{server.url}/files/0123456789abcdef/")
    with pytest.raises(BadInput, match="an address of the kind ftp"):
        open_store("ftp://example.org/stores/tiny")
    with pytest.raises(BadInput, match="ATTNSTORE_TOKEN") as caught:
        open_store("http://me:secret@127.0.0.1:1/stores/tiny")
    assert "secret" not in str(caught.value)


def test_a_server_that_is_not_there_is_said_to_give_no_answer() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: connections are refused
        with pytest.raises(NotAStore, match=r"no answer .*See whether the address is right"):
            open_store(f"http://127.0.0.1:{taken.getsockname()[1]}/stores/tiny")
    with pytest.raises(NotAStore, match="no answer"):
        open_store("http://no-such-host.invalid/stores/tiny")


def test_a_server_that_stops_in_the_middle_gives_an_error_with_a_type(server: Running) -> None:
    with counted(server.url) as proxy, open_store(f"{proxy.url}/stores/tiny") as store:
        store.attention(1, layer=0, head=0)
        proxy.stop()
        with pytest.raises(NotFound, match=r"reading http://.*/c/1/0/0: Error performing GET"):
            store.attention(1, layer=1, head=0)
        with pytest.raises(NotFound, match=r"reading http://.*parquet: Error performing GET"):
            store.ask("relations/best", min_count=1)


def test_a_strangers_server_makes_no_file_outside_the_cache(tiny_store: Path, tmp_path: Path, cache: Path) -> None:
    """A server of nothing but files, with a hash that is the path of a file elsewhere."""
    bait = tmp_path / "made" / "here"
    store = Path(shutil.copytree(tiny_store, tmp_path / "www/files/00000000"))
    hash_spoilt(store, str(bait))
    own = json.loads((store / "snapshots/00000001.json").read_text())["content_hash"]
    about = {"name": "s", "snapshot": 1, "content_hash": own, "files": "files/00000000/"}
    (tmp_path / "www/v1/stores").mkdir(parents=True)
    (tmp_path / "www/v1/stores/s").write_text(json.dumps(about))
    (tmp_path / "www/v1/stores/long").write_text(json.dumps(about) + " " * ABOUT_BYTES)

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=tmp_path / "www")) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        address = f"http://127.0.0.1:{server.server_address[1]}/stores"
        with open_store(f"{address}/s") as opened, pytest.raises(Damaged, match="hexadecimal digits"):
            opened.sql("from examples")
        with pytest.raises(NotAStore, match=f"an answer of .* bytes; expected {ABOUT_BYTES} at most"):
            open_store(f"{address}/long")
        server.shutdown()
        thread.join()
    assert not bait.parent.exists()
    assert kept(cache) == []


def test_a_redirect_does_not_take_the_token_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTNSTORE_TOKEN", TOKEN)
    seen: list[tuple[int, str | None]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append((self.server.server_address[1], self.headers.get("authorization")))
            self.send_response(302 if self.server is first else 404)
            self.send_header("location", f"http://127.0.0.1:{second.server_address[1]}/")
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    with (
        ThreadingHTTPServer(("127.0.0.1", 0), Handler) as first,
        ThreadingHTTPServer(("127.0.0.1", 0), Handler) as second,
    ):
        threads = [Thread(target=one.serve_forever, kwargs={"poll_interval": 0.02}) for one in (first, second)]
        for thread in threads:
            thread.start()
        with pytest.raises(NotAStore):
            open_store(f"http://127.0.0.1:{first.server_address[1]}/stores/tiny")
        for one, thread in zip((first, second), threads, strict=True):
            one.shutdown()
            thread.join()
    assert seen == [(first.server_address[1], f"Bearer {TOKEN}"), (second.server_address[1], None)]


def test_a_token_is_asked_for_and_sent(tiny_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text(TOKEN)
    with serving(tiny_store, "--workers", "1", "--token-file", tmp_path / "token") as running:
        address = f"{running.url}/stores/{tiny_store.stem}"
        with pytest.raises(NotAStore, match=r"the server asks for a token.*ATTNSTORE_TOKEN"):
            open_store(address)
        monkeypatch.setenv("ATTNSTORE_TOKEN", "another")
        with pytest.raises(NotAStore, match="the token is not the right one") as caught:
            open_store(address)
        assert "another" not in str(caught.value)
        monkeypatch.setenv("ATTNSTORE_TOKEN", TOKEN)
        with open_store(address) as store:
            assert store.attention(0, layer=0, head=0).shape
            assert TOKEN not in repr(store)


def test_commands_that_read_take_an_address(server: Running, tiny_store: Path, other: Path, tmp_path: Path) -> None:
    address = f"{server.url}/stores/tiny"
    mine, theirs = (rows("ask", "relations/best", place, "min_count=1") for place in (address, tiny_store))
    assert mine == theirs
    assert rows("sql", address, "select count(*) n from examples") == [{"n": len(SENTENCES)}]
    assert good("show", address, 1, "--layer", 0, "--head", 1).stdout == (
        good("show", tiny_store, 1, "--layer", 0, "--head", 1).stdout
    )
    assert {"what": "path", "value": address} in rows("info", address)
    assert rows("compare", "compare/cosine", tiny_store, f"{server.url}/stores/other") == (
        rows("compare", "compare/cosine", tiny_store, other)
    )
    good("export", address, tmp_path / "features.parquet", "--question", "probe/features", "pieces=first")
    assert (tmp_path / "features.parquet").stat().st_size > 0


def test_commands_that_need_a_folder_refuse_an_address(server: Running) -> None:
    address = f"{server.url}/stores/tiny"
    for words in (("verify", address), ("refresh", address, "head_facts")):
        result = invoke(*words)
        assert result.exit_code == 2
        assert f"{address} is an address" in result.stderr


def test_a_folder_is_no_address() -> None:
    assert [is_address(place) for place in ("http://a/b", "HTTPS://a", "s3://a/b", "hf://a")] == [True] * 4
    assert not any(map(is_address, ("a.attn", "/a//b", "C:\\a", "C://a", "./http://a", Path("http://a"))))


def test_maps_of_another_layout_are_read_through_zarr(
    remote: Store, local: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Shards, "of", lambda *_: None)
    np.testing.assert_array_equal(remote.attention(3).to_numpy(), local.attention(3).to_numpy())


def test_spans_that_lie_close_are_asked_for_together() -> None:
    assert joined_spans([]) == []
    assert joined_spans([(100, 50), (0, 100)]) == [(0, 150)]
    assert joined_spans([(0, 10), (10 + GAP, 5), (16 + 2 * GAP, 5)]) == [(0, 15 + GAP), (16 + 2 * GAP, 21 + 2 * GAP)]
    assert joined_spans([(0, SPAN), (SPAN, 1)]) == [(0, SPAN), (SPAN, SPAN + 1)]


@pytest.fixture
def files(server: Running) -> str:
    """The address of the first segment's files."""
    found = httpx.get(f"{server.url}/v1/stores/tiny").json()
    return f"{server.url}{found['files']}segments/000000"


def test_zarr_alone_reads_the_maps(files: str, local: Store) -> None:
    zarr = pytest.importorskip("zarr")
    objects = HTTPStore.from_url(f"{files}/maps.zarr", client_options={"allow_http": True})
    group = zarr.open_group(zarr.storage.ObjectStore(objects, read_only=True), mode="r")
    mine = read_cells(group["encoder"], slice(0, 2), slice(0, 3), slice(0, 20))
    theirs = local.engine.cells.weights(0, "encoder", slice(0, 2), slice(0, 3), slice(0, 20))
    np.testing.assert_array_equal(mine.astype(np.float32), theirs)


def test_zarr_reads_the_maps_through_fsspec(files: str, local: Store) -> None:
    pytest.importorskip("aiohttp")
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(zarr.storage.FsspecStore.from_url(f"{files}/maps.zarr"), mode="r")
    theirs = local.engine.cells.weights(0, "encoder", slice(0, 1), slice(0, 1), slice(0, 20))
    np.testing.assert_array_equal(np.asarray(group["encoder"][:1, :1, :20]).astype(np.float32), theirs)


def test_pandas_alone_reads_a_table(files: str, local: Store) -> None:
    pandas = pytest.importorskip("pandas")
    found = pandas.read_parquet(f"{files}/words.parquet")
    assert (
        found["form"].tolist()
        == local.sql("select form from words order by example, word").to_arrow()["form"].to_pylist()
    )


def test_arrow_reads_columns_of_a_table_by_ranges(files: str, local: Store) -> None:
    fsspec = pytest.importorskip("obstore.fsspec")
    pq = pytest.importorskip("pyarrow.parquet")
    opened = fsspec.FsspecStore("http", client_options={"allow_http": True}).open(f"{files}/examples.parquet")
    with opened:
        names = pq.read_table(io.BytesIO(opened.read()), columns=["name"])["name"].to_pylist()
    assert names == local.sql("select name from examples order by example").to_arrow()["name"].to_pylist()
