"""Fixtures of the service: a small store with words, the application in this process, and a server in its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("fastapi")

from starlette.testclient import TestClient
from starlette.types import ASGIApp

from attnstore.job.run import ingest
from attnstore.serve.access import Access
from attnstore.serve.app import make_app
from attnstore.serve.limits import Limits
from attnstore.serve.pages.render import style_hash
from attnstore.serve.published import Published, publish
from tests.conftest import SENTENCES, arrays_recipe, write_arrays
from tests.serve.running import Running, serving

HOSTS = ("127.0.0.1", "localhost", "testserver")


@pytest.fixture(scope="session")
def other_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A second store of the same sentences, with other maps. Read it only."""
    folder = tmp_path_factory.mktemp("other")
    ingest(arrays_recipe(write_arrays(folder / "corpus", SENTENCES, seed=1)), folder / "other.attn").close()
    return folder / "other.attn"


@pytest.fixture(scope="session")
def published(tiny_store: Path, other_store: Path) -> dict[str, Published]:
    """What the application shows: `tiny` and `other`."""
    return publish([("tiny", tiny_store), ("other", other_store)])


@pytest.fixture(scope="session")
def app(published: dict[str, Published]) -> ASGIApp:
    """The application with one worker (and the one that stands by), for requests by the names in HOSTS."""
    return make_app(published, Limits(workers=1, prepared=0), Access(HOSTS, styles=(style_hash(),)))


@pytest.fixture(scope="session")
def client(app: ASGIApp) -> Iterator[TestClient]:
    """A client in this process. Its application's workers are real; a failure is an answer, as for others."""
    with TestClient(app, raise_server_exceptions=False, follow_redirects=False) as found:
        yield found


@pytest.fixture(scope="session")
def server(tiny_store: Path, other_store: Path) -> Iterator[Running]:
    """A server of `tiny` and `other` with two workers, in a process of its own, which SIGTERM ends."""
    with serving(f"tiny={tiny_store}", f"other={other_store}", "--workers", "2") as running:
        yield running
