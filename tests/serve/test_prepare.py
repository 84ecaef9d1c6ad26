"""Tests of what is computed beforehand: the same answers, without maps, by a process that is told where to stop."""

import time
from pathlib import Path

import pyarrow as pa
import pytest

from attnstore.catalogue.catalogue import bind, questions
from attnstore.serve.prepare import prepare
from attnstore.store import computed, fill
from attnstore.store.contents import read_contents
from attnstore.store.prepared import Prepared
from attnstore.store.store import Store
from attnstore.store.walls import Walls
from tests.serve.running import serving

pytest.importorskip("fsspec")

WALLS = Walls(60.0, 2**30, 1)
ASKED = ("heads/offsets", "clusters/coordinates", "heads/sinks", "patterns/shares")


def place(store: Path) -> dict[str, object]:
    """A store as the server names it to its workers."""
    snapshot = read_contents(store).snapshot
    return {"path": str(store), "snapshot": snapshot.number, "content_hash": snapshot.content_hash}


@pytest.fixture(scope="module")
def folder(tiny_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everything that was prepared for the small store."""
    found = tmp_path_factory.mktemp("prepared")
    prepare({"tiny": place(tiny_store)}, found, 2**30, WALLS)
    return found


def test_answers_are_the_same_and_nothing_is_computed(
    tiny_store: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents = read_contents(tiny_store)
    with Store(contents) as store:
        expected = {name: store.ask(name).to_arrow() for name in ASKED}

    def refuse(*_: object) -> pa.Table:
        raise AssertionError("computed once more")

    monkeypatch.setattr(computed, "compute", refuse)
    monkeypatch.setattr(fill, "batches", refuse)
    with Store(contents, WALLS, Prepared(folder, contents.snapshot.content_hash)) as store:
        for name in ASKED:
            assert store.engine.computed.wanted(questions()[name], bind(questions()[name], {})), "it has to want tables"
            assert store.ask(name).to_arrow().equals(expected[name]), name


def test_other_parameters_and_another_snapshot_are_not_taken(tiny_store: Path, folder: Path) -> None:
    contents = read_contents(tiny_store)
    with Store(contents) as store:
        table, *facts = reversed(
            store.engine.computed.wanted(questions()["heads/sinks"], bind(questions()["heads/sinks"], {}))
        )
    prepared = Prepared(folder, contents.snapshot.content_hash)
    assert prepared.find(table, *facts) is not None
    name, params = table
    assert prepared.find((name, (*params, ("more", 1)))) is None
    assert Prepared(folder, "0" * 64).find(table) is None


def test_it_stops_at_its_limit(tiny_store: Path, tmp_path: Path) -> None:
    prepare({"tiny": place(tiny_store)}, tmp_path, 1, WALLS)
    assert len(list(tmp_path.iterdir())) == 1


def test_a_table_that_fails_in_the_middle_leaves_nothing(tmp_path: Path) -> None:
    def parts() -> object:
        yield pa.table({"a": [1, 2]})
        raise OSError("no room")

    prepared, schema = Prepared(tmp_path, "0" * 64), pa.schema({"a": pa.int64()})
    with pytest.raises(OSError, match="no room"):
        prepared.write([("facts", ())], schema, parts())  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_server_prepares_beside_its_work_and_takes_the_folder_away(tiny_store: Path) -> None:
    with serving(tiny_store, "--workers", "1", "--prepared", str(2**28)) as running:
        with running.client() as client:
            shown = client.get("/v1").json()["limits"]["prepared"]
            until = time.monotonic() + 60
            while "\nattnstore_preparing 1" in client.get("/metrics").text:
                assert time.monotonic() < until, "it does not end"
                time.sleep(0.1)
            assert client.get("/v1/questions/heads/offsets").status_code == 200
        assert shown == 2**28
        environ = Path(f"/proc/{running.process.pid}/root/tmp")
        before = set(environ.glob("attnstore-serve-*"))
        assert any(list(one.glob("*.arrow")) for one in before)
        assert running.stop() == 0
    assert not any(one.exists() and list(one.glob("*.arrow")) for one in before)
