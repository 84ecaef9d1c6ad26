"""This file stands between a client and a server, and counts what goes through."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread

import httpx

_PASSED = ("content-type", "content-range", "etag", "accept-ranges", "last-modified")


class Proxy:
    """What went through: `asked`, the path, status and bytes of every answer."""

    def __init__(self, behind: str) -> None:
        self.behind, self.asked = behind, list[tuple[str, int, int]]()
        self.lock = Lock()
        self.client = httpx.Client(base_url=behind, timeout=60)
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self._thread = Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    def taken(self) -> list[tuple[str, int, int]]:
        """What went through since the last call."""
        with self.lock:
            found, self.asked = self.asked, []
        return found

    def stop(self) -> None:
        """Refuse every further connection."""
        if self._thread.is_alive():
            self.server.shutdown()
            self.server.server_close()
            self._thread.join()
            self.client.close()

    def _handler(proxy) -> type[BaseHTTPRequestHandler]:  # noqa: N805 - the handler below has a `self` of its own
        class Handler(BaseHTTPRequestHandler):
            # One connection a request, so that a proxy that was stopped answers nobody.
            protocol_version = "HTTP/1.0"

            def do_GET(self) -> None:
                given = {
                    name: value for name, value in self.headers.items() if name.lower() in ("range", "authorization")
                }
                answer = proxy.client.get(self.path, headers={**given, "accept-encoding": "identity"})
                with proxy.lock:
                    proxy.asked.append((self.path, answer.status_code, len(answer.content)))
                self.send_response(answer.status_code)
                for name in _PASSED:
                    if name in answer.headers:
                        self.send_header(name, answer.headers[name])
                self.send_header("content-length", str(len(answer.content)))
                self.end_headers()
                self.wfile.write(answer.content)

            def log_message(self, *args: object) -> None:
                pass

        return Handler


@contextmanager
def counted(behind: str) -> Iterator[Proxy]:
    """A proxy in front of a server."""
    proxy = Proxy(behind)
    try:
        yield proxy
    finally:
        proxy.stop()
