"""This file is a small HTTP server that speaks as much of the Hugging Face Hub as pushing and reading a data set needs.

It keeps commits in memory, hands out large files by sending readers on to a second address, and answers ranges. Xet
storage is not spoken: the tests switch it off, and the client falls back to LFS.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

LARGE = 4096
"""Larger files are kept as LFS objects, as binary ones are."""

Tree = dict[str, bytes]


class Hub:
    """The state of the stand-in: repositories, their commits, and what was asked of it."""

    def __init__(self) -> None:
        self.repositories: dict[str, list[tuple[str, Tree]]] = {}
        self.branches: dict[str, dict[str, str]] = {}
        self.objects: dict[str, bytes] = {}
        self.asked: list[tuple[str, str, int, int]] = []
        """Method, path, status and bytes of every answer."""
        self.tokens: list[tuple[str, str | None]] = []
        """What was sent as Authorization: `hub` or `cdn`, and the header."""
        self.refuse: list[str] = []
        """Beginnings of `METHOD path` that are answered by 500."""
        self.lock = Lock()
        self.url = self.cdn = ""

    def taken(self) -> list[tuple[str, str, int, int]]:
        """What was asked since the last call."""
        with self.lock:
            found, self.asked = self.asked, []
        return found

    def commit(self, repository: str, tree: Tree) -> str:
        """Make a commit with this tree on top of the main branch."""
        commits = self.repositories.setdefault(repository, [])
        name = hashlib.sha1(f"{repository} {len(commits)}".encode()).hexdigest()
        commits.append((name, tree))
        self.branches.setdefault(repository, {})["main"] = name
        return name

    def tree(self, repository: str, revision: str) -> tuple[str, Tree] | None:
        """The commit that a revision names, and its files."""
        name = self.branches.get(repository, {}).get(revision, revision)
        return next(((one, tree) for one, tree in self.repositories.get(repository, []) if one == name), None)


def _is_large(path: str, data: bytes) -> bool:
    return len(data) > LARGE or b"\0" in data or path.endswith(".parquet")


def _described(path: str, data: bytes) -> dict[str, Any]:
    git = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
    found: dict[str, Any] = {"type": "file", "path": path, "size": len(data), "oid": git}
    if _is_large(path, data):
        found["lfs"] = {"oid": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 130}
    return found


def _listed(tree: Tree, folder: str, recursive: bool) -> list[dict[str, Any]] | None:
    top = f"{folder}/" if folder else ""
    inside = {path: data for path, data in tree.items() if path.startswith(top)}
    if folder and not inside:
        return None
    found, folders = [], set[str]()
    for path, data in inside.items():
        first, _, rest = path.removeprefix(top).partition("/")
        if rest and top + first not in folders:
            folders.add(top + first)
            found.append({"type": "directory", "path": top + first, "size": 0, "oid": "0" * 40})
        if not rest or recursive:
            found.append(_described(path, data))
    return found


def _handler(hub: Hub, place: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer()

        do_POST = do_PUT = do_HEAD = do_GET  # noqa: N815 - so the library names them

        def _answer(self) -> None:
            body = self._body()
            path = unquote(urlsplit(self.path).path)
            hub.tokens.append((place, self.headers.get("authorization")))
            if any(f"{self.command} {path}".startswith(one) for one in hub.refuse):
                return self._give(500, {"error": "refused by the test"})
            if place == "cdn":
                return self._object(path, body)
            for pattern, answer in _ROUTES:
                if (found := pattern.fullmatch(path)) and (self.command in answer[0]):
                    getattr(self, answer[1])(*found.groups(), body)
                    return
            return self._give(404, {"error": f"no such address {self.command} {path}"})

        def _body(self) -> bytes:
            if self.headers.get("transfer-encoding") != "chunked":
                return self.rfile.read(int(self.headers.get("content-length") or 0))
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return body

        def _create(self, body: bytes) -> None:
            value = json.loads(body)
            name = f"{value['organization']}/{value['name']}"
            with hub.lock:
                is_there = name in hub.repositories
                if not is_there:
                    hub.commit(name, {".gitattributes": b"*.parquet filter=lfs\n"})
            self._give(409 if is_there else 200, {"url": f"{hub.url}/datasets/{name}", "name": name, "id": name})

        def _info(self, repository: str, revision: str | None, body: bytes) -> None:
            if repository not in hub.repositories:
                return self._give(404, {"error": "Repository not found"}, {"X-Error-Code": "RepoNotFound"})
            found = hub.tree(repository, revision or "main")
            if found is None:
                return self._give(404, {"error": "Invalid rev id"}, {"X-Error-Code": "RevisionNotFound"})
            self._give(
                200, {"id": repository, "sha": found[0], "private": False, "tags": [], "downloads": 0, "likes": 0}
            )

        def _tree(self, repository: str, revision: str, folder: str | None, body: bytes) -> None:
            found = hub.tree(repository, revision)
            recursive = parse_qs(urlsplit(self.path).query).get("recursive", ["false"])[0].lower() in ("true", "1")
            listed = _listed(found[1], (folder or "").strip("/"), recursive) if found else None
            if listed is None:
                return self._give(404, {"error": "Entry not found"}, {"X-Error-Code": "EntryNotFound"})
            self._give(200, listed)

        def _preupload(self, repository: str, revision: str, body: bytes) -> None:
            tree = (hub.tree(repository, revision) or ("", {}))[1]
            answer = []
            for file in json.loads(body)["files"]:
                is_large = _is_large(file["path"], base64.b64decode(file["sample"])) or file["size"] > LARGE
                there = _described(file["path"], tree[file["path"]]) if file["path"] in tree else None
                oid = there["lfs"]["oid"] if there and "lfs" in there else there["oid"] if there else None
                mode = "lfs" if is_large else "regular"
                answer.append({"path": file["path"], "uploadMode": mode, "shouldIgnore": False, "oid": oid})
            self._give(200, {"files": answer})

        def _batch(self, repository: str, body: bytes) -> None:
            answer: list[dict[str, Any]] = []
            for one in json.loads(body)["objects"]:
                answer.append({"oid": one["oid"], "size": one["size"]})
                if one["oid"] not in hub.objects:
                    answer[-1]["actions"] = {"upload": {"href": f"{hub.cdn}/{one['oid']}"}}
            self._give(200, {"transfer": "basic", "objects": answer})

        def _commit(self, repository: str, revision: str, body: bytes) -> None:
            lines = [json.loads(line) for line in body.splitlines() if line]
            with hub.lock:
                name, tree = hub.tree(repository, revision) or ("", {})
                parent = lines[0]["value"].get("parentCommit")
                if parent not in (None, name):
                    return self._give(412, {"error": "A commit has happened since"})
                tree = dict(tree)
                for line in lines[1:]:
                    value = line["value"]
                    if line["key"] == "file":
                        tree[value["path"]] = base64.b64decode(value["content"])
                    elif line["key"] == "lfsFile" and value["oid"] in hub.objects:
                        tree[value["path"]] = hub.objects[value["oid"]]
                    else:
                        return self._give(400, {"error": f"cannot {line['key']}"})
                made = hub.commit(repository, tree)
            self._give(
                200, {"success": True, "commitOid": made, "commitUrl": f"{hub.url}/datasets/{repository}/commit/{made}"}
            )

        def _yaml(self, body: bytes) -> None:
            self._give(200, {"errors": [], "warnings": []})

        def _resolve(self, repository: str, revision: str, path: str, body: bytes) -> None:
            found = hub.tree(repository, revision)
            if found is None or path not in found[1]:
                return self._give(404, {"error": "Entry not found"}, {"X-Error-Code": "EntryNotFound"})
            data = found[1][path]
            oid = hashlib.sha256(data).hexdigest()
            told = {"X-Repo-Commit": found[0], "ETag": f'"{oid}"'}
            if _is_large(path, data):
                hub.objects[oid] = data
                told |= {"Location": f"{hub.cdn}/{oid}", "X-Linked-Size": str(len(data)), "X-Linked-ETag": f'"{oid}"'}
                return self._give(302, b"", told)
            self._file(data, told)

        def _object(self, path: str, body: bytes) -> None:
            oid = path.strip("/")
            if self.command == "PUT":
                is_right = hashlib.sha256(body).hexdigest() == oid
                if is_right:
                    hub.objects[oid] = body
                return self._give(200 if is_right else 400, b"")
            if oid not in hub.objects:
                return self._give(404, b"")
            self._file(hub.objects[oid], {"ETag": f'"{oid}"'})

        def _file(self, data: bytes, told: dict[str, str]) -> None:
            asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("range") or "")
            if asked is None:
                return self._give(200, data, told)
            start, stop = int(asked[1]), min(int(asked[2]) + 1, len(data))
            self._give(206, data[start:stop], {**told, "Content-Range": f"bytes {start}-{stop - 1}/{len(data)}"})

        def _give(self, status: int, value: Any, headers: dict[str, str] | None = None) -> None:
            data = value if isinstance(value, bytes) else json.dumps(value).encode()
            with hub.lock if not hub.lock.locked() else _nothing():
                hub.asked.append((self.command, unquote(urlsplit(self.path).path), status, len(data)))
            self.send_response(status)
            kind = "application/octet-stream" if isinstance(value, bytes) else "application/json"
            for name, text in {"Content-Type": kind, "Content-Length": str(len(data)), **(headers or {})}.items():
                self.send_header(name, text)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        def log_message(self, *args: object) -> None:
            pass

    return Handler


@contextmanager
def _nothing() -> Iterator[None]:
    yield


_NAME, _REVISION = r"([\w.-]+/[\w.-]+)", r"([^/]+)"
_ROUTES = [
    (re.compile("/api/repos/create"), ("POST", "_create")),
    (re.compile("/api/validate-yaml"), ("POST", "_yaml")),
    (re.compile(f"/api/datasets/{_NAME}(?:/revision/{_REVISION})?"), ("GET", "_info")),
    (re.compile(f"/api/datasets/{_NAME}/tree/{_REVISION}(/.*)?"), ("GET", "_tree")),
    (re.compile(f"/api/datasets/{_NAME}/preupload/{_REVISION}"), ("POST", "_preupload")),
    (re.compile(f"/api/datasets/{_NAME}/commit/{_REVISION}"), ("POST", "_commit")),
    (re.compile(rf"/datasets/{_NAME}\.git/info/lfs/objects/batch"), ("POST", "_batch")),
    (re.compile(f"/datasets/{_NAME}/resolve/{_REVISION}/(.*)"), (("GET", "HEAD"), "_resolve")),
]


@contextmanager
def hub_running() -> Iterator[Hub]:
    """The stand-in on two free ports, of which the second hands out large files."""
    hub = Hub()
    servers = [ThreadingHTTPServer(("127.0.0.1", 0), _handler(hub, place)) for place in ("hub", "cdn")]
    hub.url, hub.cdn = (f"http://127.0.0.1:{server.server_address[1]}" for server in servers)
    threads = [Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True) for server in servers]
    for thread in threads:
        thread.start()
    try:
        yield hub
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()
