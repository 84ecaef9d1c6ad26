"""The files of a snapshot over HTTP: whole, by ranges, never changed, and nothing beside them."""

import asyncio
import contextlib
import hashlib
import os
import shutil
import socket
import struct
import time
from pathlib import Path

import httpx
import numpy as np
import pytest
import zarr
from starlette.testclient import TestClient
from starlette.types import ASGIApp, Message

from attnstore.serve.published import Published
from tests.serve.running import Running, serving


@pytest.fixture(scope="module")
def place(published: dict[str, Published]) -> str:
    """The address of the files of `tiny`."""
    return f"/files/{published['tiny'].key}/"


@pytest.fixture(scope="module")
def table(published: dict[str, Published]) -> str:
    """The path of a Parquet file."""
    return next(name for name in published["tiny"].files if name.endswith("words.parquet"))


def test_every_file_of_the_listing_has_its_bytes_and_its_sha256(client: TestClient, place: str) -> None:
    files = client.get(place).json()["files"]
    assert {"store.json", "snapshots/00000001.json"} <= set(files)
    for name, about in files.items():
        answer = client.get(place + name)
        assert (answer.status_code, len(answer.content)) == (200, about["bytes"]), name
        assert hashlib.sha256(answer.content).hexdigest() == about["sha256"], name
        assert answer.headers["etag"] == f'"{about["sha256"]}"', name
        assert "immutable" in answer.headers["cache-control"], name
        assert answer.headers["content-disposition"].startswith("attachment"), name
        assert "content-encoding" not in answer.headers, name


@pytest.mark.parametrize(
    ("wanted", "first", "stop"),
    [("bytes=0-3", 0, 4), ("bytes=4-", 4, None), ("bytes=-4", -4, None), ("bytes=0-999999999", 0, None)],
)
def test_a_range_gives_its_bytes(
    client: TestClient, place: str, table: str, wanted: str, first: int, stop: int | None
) -> None:
    whole = client.get(place + table).content
    answer = client.get(place + table, headers={"range": wanted})
    begin = first % len(whole)
    assert (answer.status_code, answer.content) == (206, whole[first:stop])
    assert answer.headers["content-range"] == f"bytes {begin}-{begin + len(answer.content) - 1}/{len(whole)}"
    assert int(answer.headers["content-length"]) == len(answer.content)


@pytest.mark.parametrize("wanted", ["bytes=0-1,4-5", "bytes=", "bytes=-", "lines=0-3", "bytes=a-b", "0-3"])
def test_a_range_that_is_not_understood_gives_the_whole_file(
    client: TestClient, place: str, table: str, wanted: str
) -> None:
    assert client.get(place + table, headers={"range": wanted}).status_code == 200


def test_a_range_beyond_the_end_is_a_problem(client: TestClient, place: str, table: str) -> None:
    for wanted in ("bytes=999999999-", "bytes=5-4", "bytes=-0"):
        answer = client.get(place + table, headers={"range": wanted})
        assert (answer.status_code, answer.json()["type"]) == (416, "/problems/bad-range"), wanted


def test_a_client_that_has_the_file_is_told_so(client: TestClient, place: str, table: str) -> None:
    etag = client.get(place + table).headers["etag"]
    assert client.get(place + table, headers={"if-none-match": etag}).status_code == 304
    ranged = {"range": "bytes=0-3", "if-range": etag}
    assert client.get(place + table, headers=ranged).status_code == 206
    assert client.get(place + table, headers={**ranged, "if-range": '"old"'}).status_code == 200
    headed = client.head(place + table)
    assert (headed.status_code, headed.content, headed.headers["etag"]) == (200, b"", etag)
    assert int(headed.headers["content-length"]) > 0
    assert client.head(place + table, headers={"range": "bytes=0-3"}).headers["content-length"] == "4"


@pytest.mark.parametrize(
    "path",
    ["nothing", "..%2f..%2f..%2fetc%2fpasswd", "%2fetc%2fpasswd", "store.json%00", "segments", "/"],
)
def test_what_the_snapshot_does_not_list_is_not_there(client: TestClient, place: str, path: str) -> None:
    answer = client.get(place + path)
    assert answer.status_code == 404
    assert answer.json()["type"] == "/problems/not-found"
    assert client.get("/files/0000000000000000/store.json").status_code == 404


def test_a_client_that_is_gone_before_the_first_byte_leaves_nothing_open(
    app: ASGIApp, published: dict[str, Published], table: str
) -> None:
    path = f"/files/{published['tiny'].key}/{table}"
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "scheme": "http",
        "http_version": "1.1",
        "headers": [(b"host", b"testserver")],
    }
    sent: list[int] = []

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message["status"])
        raise OSError("the client is gone")

    def is_open() -> int:
        place = published["tiny"].files[table].place
        with contextlib.suppress(OSError):
            return sum(Path(entry).resolve() == place.resolve() for entry in Path("/proc/self/fd").iterdir())
        return 0

    before = is_open()
    for _ in range(5):
        with contextlib.suppress(OSError):
            asyncio.run(app(scope, receive, send))  # type: ignore[arg-type]
    assert (sent[0], is_open()) == (200, before)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts descriptors in /proc")
def test_clients_that_ask_for_a_file_and_close_leave_nothing_open(server: Running, place: str, table: str) -> None:
    opened = Path(f"/proc/{server.process.pid}/fd")
    with server.client() as client:
        assert client.get(place + table).status_code == 200
    time.sleep(1)
    before = len(list(opened.iterdir()))
    for _ in range(60):
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.sendall(f"GET {place}{table} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    until = time.monotonic() + 20
    while (count := len(list(opened.iterdir()))) > before and time.monotonic() < until:
        time.sleep(0.1)
    assert count <= before


def test_zarr_reads_maps_over_http(server: Running, tiny_store: Path, published: dict[str, Published]) -> None:
    pytest.importorskip("obstore")
    from obstore.store import HTTPStore
    from zarr.storage import ObjectStore

    paths = [name.removesuffix("/zarr.json") for name in published["tiny"].files if name.endswith("/zarr.json")]
    path = next(name for name in paths if name.endswith("maps.zarr/encoder"))
    address = f"{server.url}/files/{published['tiny'].key}/{path}"
    remote = ObjectStore(HTTPStore.from_url(address, client_options={"allow_http": True}), read_only=True)
    array = zarr.open_array(remote, mode="r")
    local = zarr.open_array(tiny_store / path, mode="r")
    assert array.shape == local.shape
    np.testing.assert_array_equal(array[1, 2, :10], local[1, 2, :10])


def test_a_store_that_is_damaged_while_it_is_served_is_a_problem_and_the_others_go_on(
    tiny_store: Path, other_store: Path, tmp_path: Path
) -> None:
    own = tmp_path / "own.attn"
    shutil.copytree(tiny_store, own)
    with serving(own, other_store, "--workers", "1", "--cache", "0") as running, running.client() as client:
        about = client.get("/v1/stores/own").json()
        place = about["files"]
        names = list(client.get(place).json()["files"])
        words = next(name for name in names if name.endswith("words.parquet"))
        shard = next(name for name in names if "/c/" in name)
        for name in (words, shard):
            (own / name).unlink()
        outside = tmp_path / "secret"
        outside.write_bytes(b"secret" * 100)
        (own / words).symlink_to(outside)
        (own / "store.json").write_bytes(b"{")
        for path in (words, shard, "store.json"):
            told(client.get(place + path), "damaged")
        for path in ("/v1/questions/tokens/words?store=own", "/v1/attention/0/0/0?store=own"):
            answer = client.get(path)
            assert answer.status_code >= 400, path
            assert str(tmp_path) not in answer.text
            assert "Traceback" not in answer.text
        shutil.rmtree(own)
        assert client.get("/v1/attention/0/1/1?store=own").status_code >= 400
        assert client.get("/v1/attention/0/0/0?store=other").status_code == 200
        assert client.get("/healthz").status_code == 200
        assert os.path.exists(outside)


def told(answer: httpx.Response, kind: str) -> None:
    assert answer.json()["type"] == f"/problems/{kind}", answer.text
    assert b"secret" not in answer.content
