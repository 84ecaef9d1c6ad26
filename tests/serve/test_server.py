"""The server as a process: how it starts and ends, and clients that are slow, gone, or speak no HTTP."""

import contextlib
import json
import re
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
import uvicorn
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from attnstore.serve.connection import connections
from tests.serve.running import WAIT, Running, gone, serving, started

pytestmark = pytest.mark.slow

LARGE = "select repeat('x', 1000) as x from range(9000)"
LONG = "select count(*) as n from range(100000000) as r(i) where i % 7 = hash(i) % 11"


@pytest.fixture
def narrow(tiny_store: Path) -> Iterator[Running]:
    """A server with one worker that lets clients hold little, and not for long."""
    with serving(tiny_store, "--workers", "1", "--send-time", "1", "--held", "1000000", "--time-limit", "20") as found:
        yield found


def until(holds: Callable[[], bool]) -> None:
    """Return as soon as it holds; an error where it never does."""
    end = time.monotonic() + WAIT
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def raw(running: Running, *, small: bool = False) -> socket.socket:
    """A connection."""
    found = socket.socket()
    if small:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    found.settimeout(WAIT)
    found.connect(("127.0.0.1", running.port))
    return found


def request(sql: str) -> bytes:
    """A statement as HTTP."""
    body = json.dumps({"sql": sql}).encode()
    head = "POST /v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
    return f"{head}{len(body)}".encode() + b"\r\n\r\n" + body


def counter(client: httpx.Client, name: str) -> float:
    """A number of /metrics, 0 where it is not there yet."""
    found = re.search(rf"^{re.escape(name)} (\S+)$", client.get("/metrics").text, re.MULTILINE)
    return float(found[1]) if found else 0.0


def rest(connection: socket.socket) -> bytes:
    """Everything until the other end closes."""
    found = b""
    try:
        while block := connection.recv(65536):
            found += block
    except ConnectionResetError:
        pass
    return found


# --- start and end


def test_it_says_where_it_listens_and_ends_with_status_0_and_no_worker_left(tiny_store: Path) -> None:
    with serving(tiny_store, "--workers", "1") as running:
        assert httpx.get(f"{running.url}/healthz").status_code == 200
        workers = running.children()
        assert len(workers) >= 2
        assert running.stop() == 0
        assert running.stderr.splitlines() == [f"{running.url}/stores/tiny   tiny"]
        assert gone(workers)


def test_what_runs_is_finished_before_it_ends(tiny_store: Path) -> None:
    with serving(tiny_store, "--workers", "1", "--time-limit", "50") as running:
        answers: list[httpx.Response] = []
        asking = threading.Thread(
            target=lambda: answers.append(httpx.post(f"{running.url}/v1/query", json={"sql": LONG}, timeout=WAIT))
        )
        asking.start()
        time.sleep(1)  # for the request to arrive
        running.process.send_signal(signal.SIGTERM)
        asking.join(WAIT)
        assert answers[0].status_code == 200
        assert running.process.wait(WAIT) == 0


def test_workers_end_with_a_server_that_is_killed(tiny_store: Path) -> None:
    with serving(tiny_store, "--workers", "1") as running:
        workers = running.children()
        assert len(workers) >= 2
        running.kill()
        assert gone(workers)


@pytest.mark.parametrize(
    "case", ["port", "names", "store", "public", "token", "no-token", "bytes", "limit", "nan", "queue", "host"]
)
def test_what_cannot_be_served_ends_in_one_line(case: str, tiny_store: Path, tmp_path: Path, server: Running) -> None:
    (tmp_path / "empty").write_text("")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\xff")
    words, said = {
        "port": ([tiny_store, "--port", str(server.port)], f"port {server.port}: Address already in use"),
        "names": ([tiny_store, f"Tiny={tiny_store}"], "two stores named tiny"),
        "store": ([tmp_path], "store.json"),
        "public": ([tiny_store, "--public", "--token-file", __file__], "--public and a token"),
        "token": ([tiny_store, "--token-file", str(tmp_path / "empty")], "no token"),
        "no-token": ([tiny_store, "--token-file", tmp_path / "none"], "No such file"),
        "bytes": ([tiny_store, "--token-file", tmp_path / "bytes"], "cannot be read as text"),
        "nan": ([tiny_store, "--time-limit", "nan"], "time_limit=nan"),
        "queue": ([tiny_store, "--queue", "-5"], "queue=-5"),
        "limit": ([tiny_store, "--time-limit", "0"], "time_limit=0"),
        "host": ([tiny_store, "--host", "192.0.2.1"], "listening at 192.0.2.1"),
    }[case]
    running = started(*words)
    try:
        assert running.process.wait(WAIT) == 1
    finally:
        running.kill()
    assert said in running.stderr
    assert running.stderr.startswith("Error: ")
    assert running.stderr.count("\n") == 1


def test_beyond_loopback_a_token_is_made_and_told_once(tiny_store: Path) -> None:
    with serving(tiny_store, "--host", "0.0.0.0", "--workers", "1") as running:
        until(lambda: "token: " in running.stderr)
        token = running.stderr.rpartition("token: ")[2].strip()
        url = f"http://127.0.0.1:{running.port}"
        assert httpx.get(f"{url}/v1").status_code == 401
        assert httpx.get(f"{url}/v1", headers={"authorization": f"Bearer {token}"}).status_code == 200
        httpx.get(f"{url}/v1/questions/none", headers={"authorization": f"Bearer {token}"})
        running.stop()
        assert running.stderr.count(token) == 1


def test_a_token_of_ones_own_is_not_told(tiny_store: Path, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("out-of-a-file\n")
    with serving(tiny_store, "--workers", "1", "--token-file", tmp_path / "token") as running:
        assert httpx.get(f"{running.url}/v1").status_code == 401
        assert httpx.get(f"{running.url}/v1", headers={"authorization": "Bearer out-of-a-file"}).status_code == 200
        running.stop()
        assert "out-of-a-file" not in running.stderr


# --- clients


def test_a_client_that_does_not_fetch_is_dropped_and_others_are_answered_meanwhile(narrow: Running) -> None:
    with raw(narrow, small=True) as slow, narrow.client() as client:
        slow.sendall(request(LARGE))
        head = slow.recv(1024)
        size = int(re.search(rb"content-length: (\d+)", head)[1])  # type: ignore[index]
        assert client.get("/readyz").status_code == 200  # a worker is free
        until(lambda: client.post("/v1/query", json={"sql": LARGE}).status_code == 200)
        assert len(head) + len(rest(slow)) < size


def test_more_than_clients_may_hold_is_busy(tiny_store: Path) -> None:
    with (
        serving(tiny_store, "--workers", "1", "--held", "1000000") as running,
        raw(running, small=True) as slow,
        running.client() as client,
    ):
        slow.sendall(request(LARGE))
        assert slow.recv(100).startswith(b"HTTP/1.1 200")
        answer = client.post("/v1/query", json={"sql": LARGE})
        assert (answer.status_code, answer.json()["type"]) == (503, "/problems/busy")
        assert int(answer.headers["retry-after"]) > 0
        assert client.get("/healthz").status_code == 200
        slow.close()
        until(lambda: client.post("/v1/query", json={"sql": LARGE}).status_code == 200)


def test_a_client_that_goes_away_leaves_the_line(narrow: Running) -> None:
    with narrow.client() as client, raw(narrow) as first, raw(narrow) as second:
        asked = counter(client, "attnstore_worker_seconds_count")
        first.sendall(request(LONG))
        time.sleep(0.3)  # for the request to arrive
        second.sendall(request("select 2 as two"))
        until(lambda: counter(client, "attnstore_waiting_requests") == 1)
        second.close()
        until(lambda: counter(client, "attnstore_waiting_requests") == 0)
        assert first.recv(1024).startswith(b"HTTP/1.1 200")
        assert counter(client, "attnstore_worker_seconds_count") == asked + 1


def test_a_request_that_does_not_come_is_not_waited_for(narrow: Running) -> None:
    for begun in (b"", b"GET /v1 HT", b"GET /v1 HTTP/1.1\r\nHost: local", request("select 1")[:-3]):
        with raw(narrow) as connection:
            connection.sendall(begun)
            rest(connection)  # ends, since the server closes


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /v1 HTTP/1.1\r\n\r\n",
        b"GET /v1 HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET /v1 HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
        b"GET /v1 HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 100_000 + b"\r\n\r\n",
        b"POST /v1/query HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
)
def test_what_is_no_http_is_a_problem_and_nothing_ends(server: Running, sent: bytes) -> None:
    with raw(server) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        answer = rest(connection)
        assert answer == b"" or re.match(rb"HTTP/1.1 4\d\d ", answer), answer[:100]
        assert b"Traceback" not in answer
    assert httpx.get(f"{server.url}/healthz").status_code == 200


def test_requests_one_behind_the_other_are_answered_in_order(server: Running) -> None:
    with raw(server) as connection:
        paths = (b"/healthz", b"/v1/questions/heads/entropy?max_rows=1", b"/none", b"/v1")
        connection.sendall(b"".join(b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % path for path in paths[:-1]))
        connection.sendall(b"GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" % paths[-1])
        found = re.findall(rb"HTTP/1.1 (\d+) ", rest(connection))
        assert found == [b"200", b"200", b"404", b"200"]


def test_more_connections_than_there_may_be_are_told_to_come_again() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await PlainTextResponse("fine")(scope, receive, send)

    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    config = uvicorn.Config(app, http=connections(30, 3), log_config=None, lifespan="off")
    service = uvicorn.Server(config)
    thread = threading.Thread(target=service.run, args=([listener],))
    thread.start()
    try:
        until(lambda: service.started)
        with contextlib.ExitStack() as stack:
            for _ in range(2):
                client = stack.enter_context(httpx.Client())
                assert client.get(url).text == "fine"
            answer = httpx.get(url)
            assert (answer.status_code, answer.json()["type"]) == (503, "/problems/busy")
            assert answer.headers["content-type"] == "application/problem+json"
            assert (answer.headers["retry-after"], answer.headers["connection"]) == ("5", "close")
        until(lambda: httpx.get(url).status_code == 200)
    finally:
        service.should_exit = True
        thread.join(WAIT)


def test_an_upgrade_is_not_followed(server: Running) -> None:
    headers = {"connection": "upgrade", "upgrade": "websocket", "sec-websocket-key": "x", "sec-websocket-version": "13"}
    assert httpx.get(f"{server.url}/healthz", headers=headers).status_code == 200
