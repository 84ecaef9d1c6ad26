"""This file tests the second and third wall without the first: an engine that is locked, and files for reading only."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from attnstore.errors import AttnStoreError, BadQuestion
from attnstore.serve.problems import problem
from attnstore.store.comparison import compare
from attnstore.store.contents import read_contents
from attnstore.store.file_layer import Files
from attnstore.store.store import Store
from attnstore.store.walls import Walls
from tests.serve.hostile import hostile

WALLS = Walls(seconds=5, memory_bytes=256 * 2**20, threads=1)


@pytest.fixture(scope="module")
def store(tiny_store: Path) -> Iterator[Store]:
    """A store behind walls, in this process."""
    with Store(read_contents(tiny_store), WALLS) as found:
        assert found.sql("select count(*) n from words").to_arrow().num_rows == 1
        yield found


@pytest.fixture(scope="module")
def cursor(store: Store) -> duckdb.DuckDBPyConnection:
    """Its connection, on which nobody judges statements."""
    return store.engine.database._connection


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, in which the test runs, with a file beside it."""
    (tmp_path / "secret.csv").write_text("secret\n7e1c5f\n")
    place = tmp_path / "outside"
    place.mkdir()
    monkeypatch.chdir(place)
    return place


def url(store: Store) -> str:
    """The name of one file of the store, as SQL says it."""
    return next(iter(store.engine.database._layouts[0].files.named()))


WRITES = (
    "copy (select 1) to '{to}'",
    "with x as (copy (select 1) to '{to}') from x",
    "copy words to '{to}' (format parquet, use_tmp_file false)",
    "export database '{to}'",
    "attach '{to}' as other",
)


@pytest.mark.parametrize("text", WRITES)
@pytest.mark.parametrize("to", ["stolen", "../stolen", "{outside}/stolen", "{store}/stolen", "attn://stolen", "{url}"])
def test_the_engine_alone_writes_nothing(
    cursor: duckdb.DuckDBPyConnection, store: Store, outside: Path, tiny_store: Path, text: str, to: str
) -> None:
    before = {path: path.stat().st_mtime_ns for path in tiny_store.rglob("*")}
    place = to.format(outside=outside, store=tiny_store, url=url(store))
    # A Parquet file of the store may be attached, for reading, by whoever passed the gate.
    is_read = "attach" in text and to == "{url}"
    with contextlib.suppress(duckdb.Error) if is_read else pytest.raises(duckdb.Error):
        cursor.cursor().execute(text.format(to=place)).fetchall()
    assert list(outside.iterdir()) == []
    assert not (outside.parent / "stolen").exists()
    assert {path: path.stat().st_mtime_ns for path in tiny_store.rglob("*")} == before


@pytest.mark.parametrize(
    "text",
    [
        "from read_text('{file}')",
        "from read_blob('../secret.csv')",
        "from read_csv('{file}')",
        "from '{file}'",
        "from read_text('file://{file}')",
        "from read_text('/proc/self/environ')",
        "from glob('{outside}/../*')",
        "from read_json('{store}/store.json')",
        "from read_parquet('{store}/segments/*/words.parquet')",
        "from read_text('attn://../secret.csv')",
        "from read_text('{url}/../../../store.json')",
        "from read_csv('https://127.0.0.1:1/x.csv')",
        "import database '{outside}/..'",
        "load '{outside}/x.duckdb_extension'",
        "install httpfs",
    ],
)
def test_the_engine_alone_reads_no_other_file(
    cursor: duckdb.DuckDBPyConnection, store: Store, outside: Path, tiny_store: Path, text: str
) -> None:
    names = {"file": outside.parent / "secret.csv", "outside": outside, "store": tiny_store, "url": url(store)}
    found: object = []
    with contextlib.suppress(duckdb.Error):
        found = cursor.cursor().execute(text.format(**names)).fetchall()
    assert found == []


@pytest.mark.parametrize(
    "text",
    [one.text for one in hostile() if one.kind == "settings" and one.text.startswith(("set ", "reset ", "pragma "))],
)
def test_the_engine_alone_keeps_its_settings(cursor: duckdb.DuckDBPyConnection, outside: Path, text: str) -> None:
    shown = "select name, value from duckdb_settings() where name not in ('search_path', 'schema') order by name"
    own = cursor.cursor()
    before = own.execute(shown).fetchall()
    with contextlib.suppress(duckdb.Error):
        own.execute(text.replace("{folder}", str(outside))).fetchall()
    assert cursor.cursor().execute(shown).fetchall() == before
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("enable_external_access", False),
        ("lock_configuration", True),
        ("memory_limit", "256.0 MiB"),
        ("threads", 1),
        ("temp_directory", ""),
        ("allowed_directories", ["attn://"]),
        ("max_execution_time", 5000),
        ("python_enable_replacements", False),
        ("autoload_known_extensions", False),
        ("autoinstall_known_extensions", False),
    ],
)
def test_a_cursor_has_the_settings_of_the_walls(cursor: duckdb.DuckDBPyConnection, name: str, value: object) -> None:
    found = cursor.cursor().execute("select current_setting($1)", [name]).fetchone()
    assert found is not None
    assert found[0] == value or str(found[0]) == str(value)


def test_two_stores_stand_behind_the_walls_of_the_first(tiny_store: Path, other_store: Path, outside: Path) -> None:
    with Store(read_contents(tiny_store), WALLS) as a, Store(read_contents(other_store), WALLS) as b:
        both = compare(a, b)
        assert both.sql("select count(*) n from a.words join b.words using (example, word)").to_arrow()["n"][0].as_py()
        cursor = both._engine.database._connection
        for text in (f"copy (select 1) to '{outside}/stolen'", f"from read_text('{outside.parent}/secret.csv')"):
            with pytest.raises(duckdb.Error, match="Permission"):
                cursor.cursor().execute(text).fetchall()
        with pytest.raises(duckdb.Error):
            cursor.cursor().execute("set threads = 2")
        both.close()
    assert list(outside.iterdir()) == []


def test_a_statement_that_runs_long_is_interrupted_on_every_cursor(tiny_store: Path) -> None:
    with Store(read_contents(tiny_store), Walls(0.3, 256 * 2**20, 1)) as store:
        for _ in range(2):
            with pytest.raises(BadQuestion) as error:
                store.sql("select sum(a.range * b.range % 7) from range(1000000) a, range(1000000) b")
            assert problem(error.value).kind == "timeout"
        assert store.sql("select count(*) from words").to_arrow().num_rows == 1


def test_a_statement_that_takes_memory_is_told_so(store: Store) -> None:
    with pytest.raises(AttnStoreError) as error:
        store.sql("select count(*) from (select distinct range, range // 3 from range(50000000))")
    assert problem(error.value).kind == "memory"
    assert store.sql("select count(*) from words").to_arrow().num_rows == 1


@pytest.mark.parametrize("bad", ["select cast(if(range = 400000, 'x', '1') as int) from range(500000)"])
def test_an_error_in_the_middle_of_an_answer_is_that_of_the_statement(store: Store, bad: str) -> None:
    with pytest.raises(BadQuestion, match="Could not convert"):
        store.engine.database.run(bad, max_rows=500_000, max_bytes=2**30)


def test_an_answer_is_read_until_it_passes_its_bytes(store: Store) -> None:
    whole = store.engine.database.run("from range(100000)", max_rows=100_000, max_bytes=2**30)
    part = store.engine.database.run("from range(100000)", max_rows=100_000, max_bytes=80_000)
    assert len(whole) == 100_000
    assert 10_000 < len(part) < 20_000
    assert part.equals(whole.slice(0, len(part)))


def test_files_are_read_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"0123456789")
    (tmp_path / "b").write_bytes(b"secret")
    files = Files({"attn://x/a": tmp_path / "a"})
    with files.open("attn://x/a") as file:
        assert file.read() == b"0123456789"
    assert files.exists("attn://x/a")
    assert not files.exists("attn://x/b")
    assert files.ls("attn://x") == []
    assert files.glob("attn://x/*") == []
    assert files.info("attn://x/a")["size"] == 10
    for name in ("attn://x/b", "attn://x/../b", "attn://x/a/../b", str(tmp_path / "b"), "attn://", ""):
        with pytest.raises(FileNotFoundError):
            files.open(name)
    for mode in ("wb", "ab", "r+b", "xb", "w"):
        with pytest.raises((PermissionError, ValueError)):
            files.open("attn://x/a", mode)
    # Of the ways to write some raise and some do nothing.
    for act in (files.rm_file, files.mkdir, files.rmdir, files.touch, files.makedirs, files.rm):
        with contextlib.suppress(NotImplementedError, PermissionError, FileNotFoundError):
            act("attn://x/a")
    with contextlib.suppress(NotImplementedError, PermissionError, FileNotFoundError):
        files.mv("attn://x/a", "attn://x/c")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]
    assert (tmp_path / "a").read_bytes() == b"0123456789"
