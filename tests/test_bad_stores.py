"""A store that is not what it should be, and a question it cannot answer, end in one typed error; the rest stays."""

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import attnstore
from attnstore.errors import (
    AttnStoreError,
    BadInput,
    BadQuestion,
    Damaged,
    NotFound,
    NotStored,
    UnsupportedFormat,
)
from attnstore.format.verify import verify
from attnstore.job import plan as plan_module
from attnstore.job.run import ingest
from attnstore.store import asking
from tests.conftest import arrays_recipe
from tests.forging import repin


def content(store: Path) -> dict[str, str]:
    """sha256 of every file under a folder."""
    files = (path for path in store.rglob("*") if path.is_file())
    return {path.relative_to(store).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture
def store(tiny_store: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_store, tmp_path / "tiny.attn"))


def test_a_store_of_a_newer_format_is_left_alone(store: Path, arrays_corpus: Path) -> None:
    path = store / "store.json"
    path.write_text(path.read_text().replace('"format": "1.0"', '"format": "2.0"'))
    before = content(store)
    for use in (
        lambda: ingest(arrays_recipe(arrays_corpus), store),
        lambda: attnstore.open(store),
        lambda: verify(store),
    ):
        with pytest.raises(UnsupportedFormat, match=r"format 2\.0; expected format 1\.x\. Install a release"):
            use()
    assert content(store) == before


def test_every_file_of_a_store_is_missed_where_it_is_gone_or_short(store: Path) -> None:
    files = sorted((store / "segments").rglob("*"))
    for path in (path for path in files if path.is_file()):
        whole = path.read_bytes()
        for spoilt in (None, whole[: len(whole) // 2]):
            path.unlink() if spoilt is None else path.write_bytes(spoilt)
            with pytest.raises(Damaged) as caught, attnstore.open(store) as opened:
                opened.sql("from heads")
            assert str(path) in str(caught.value)
            assert "attnstore verify" in str(caught.value) or "Fetch the store again" in str(caught.value)
            assert verify(store), path
            path.write_bytes(whole)
    assert verify(store, deep=True) == []


def test_the_files_of_two_stores_do_not_mix(store: Path, make_store: Callable[..., Path], arrays_corpus: Path) -> None:
    other = make_store("other.attn", keep__precision="exact")
    for part in (
        "segments/000000",
        "segments/000000/maps.zarr/encoder/c/0/0/0",
        "snapshots/00000001.json",
        "store.json",
    ):
        place = Path(shutil.copytree(store, store.parent / part.replace("/", " ")))
        if (place / part).is_dir():
            shutil.rmtree(place / part)
            shutil.copytree(other / part, place / part)
        else:
            shutil.copy(other / part, place / part)
        with pytest.raises(Damaged) as caught, attnstore.open(place) as opened:
            opened.sql("from heads")
        assert str(place) in str(caught.value), part
        assert verify(place), part
        before = content(place)
        with pytest.raises(AttnStoreError):  # and nothing is added to the mixture
            ingest(arrays_recipe(arrays_corpus, title="again"), place)
        assert content(place) == before


def test_a_second_segment_of_another_store_is_not_taken_for_ones_own(
    store: Path, make_store: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_module, "SEGMENT_TOKENS", 20)
    cut = make_store("cut.attn")
    shutil.copytree(cut / "segments/000001", store / "segments/000001")
    # No snapshot lists it: readers pass it over.
    with attnstore.open(store) as opened:
        assert len(opened.units) == 1


def hash_spoilt(store: Path, sha256: str) -> None:
    """Make a table's hash another text, and the hashes above it right: a store as a stranger may make it."""
    manifest = store / "segments/000000/segment.json"
    value = json.loads(manifest.read_text())
    next(file for file in value["files"] if file["path"] == "examples.parquet")["sha256"] = sha256
    manifest.write_text(json.dumps(value))
    repin(store)


@pytest.mark.parametrize("text", ["/srv/x/y", "../../x", ""])
def test_a_hash_that_would_lead_out_of_a_cache_is_damage(store: Path, text: str) -> None:
    hash_spoilt(store, hashlib.sha256((store / "segments/000000/examples.parquet").read_bytes()).hexdigest())
    with attnstore.open(store) as opened:  # hashes above it are right
        assert list(opened.sql("select count(*) as n from examples")) == [{"n": 7}]
    hash_spoilt(store, text)
    with attnstore.open(store) as opened, pytest.raises(Damaged, match=r"segment\.json: .* hexadecimal digits"):
        opened.sql("from examples")


# --- questions that have no answer


@pytest.fixture(scope="module")
def opened(tiny_store: Path) -> Iterator[attnstore.Store]:
    with attnstore.open(tiny_store) as store:
        yield store


@pytest.mark.parametrize(
    ("use", "kind", "told"),
    [
        (lambda s: s.ask("relations/bets"), NotFound, ["relations/bets", "relations/best", "attnstore questions"]),
        (lambda s: s.ask("none.sql"), NotFound, ["none.sql", "no such file"]),
        (lambda s: s.ask("relations/best", min_cuont=3), BadInput, ["min_cuont", "Did you mean min_count"]),
        (lambda s: s.ask("relations/best", min_count="many"), BadInput, ["min_count", "an integer"]),
        (lambda s: s.ask("relations/accuracy", words="most"), BadInput, ["words", "one of"]),
        (lambda s: s.ask("heads/entropy", kind="cross"), NotFound, ["cross", "encoder"]),
        (lambda s: s.sql("select wrod from words"), NotFound, ["wrod", "word", "store.tables"]),
        (lambda s: s.sql("select * from wrods"), NotFound, ["wrods", "words", "store.tables"]),
        (lambda s: s.sql("select $a"), BadInput, ["$a", "a=VALUE"]),
        (lambda s: s.sql("select 1", a=2), BadInput, ["a value for a", "no parameters"]),
        (lambda s: s.sql("selct 1"), BadQuestion, ["selct"]),
        (lambda s: s.sql("select 1; select 2"), BadQuestion, ["2 statements", "one SELECT"]),
        (lambda s: s.sql("create table t as select 1"), BadQuestion, ["CREATE", "one that reads"]),
        (lambda s: s.sql("copy words to 'x.csv'"), BadQuestion, ["COPY", "one that reads"]),
        (lambda s: s.attention(7), NotFound, ["example=7", "0-6"]),
        (lambda s: s.attention("s9"), NotFound, ["s9", "'s"]),
        (lambda s: s.attention(0, layer=2), NotFound, ["layer=2", "0-1"]),
        (lambda s: s.attention(0, head=[0, 3]), NotFound, ["head=3", "0-2"]),
        (lambda s: s.attention(0, level="sentence"), BadInput, ["sentence", "word"]),
        (lambda s: s.attention(0, kind="decoder"), NotFound, ["decoder", "encoder"]),
    ],
)
def test_a_question_without_an_answer_says_what_there_is(
    opened: attnstore.Store, use: Callable[[attnstore.Store], object], kind: type[AttnStoreError], told: list[str]
) -> None:
    with pytest.raises(kind) as caught:
        use(opened)
    assert type(caught.value) is kind
    for part in told:
        assert part in str(caught.value), caught.value
    assert list(opened.sql("select count(*) as n from examples")) == [{"n": 7}]  # and the store goes on


def test_maps_that_were_not_kept_are_named_as_such(make_store: Callable[..., Path]) -> None:
    with attnstore.open(make_store(keep__layers=[1])) as store:
        with pytest.raises(NotStored):
            store.attention(0, layer=0)
        assert store.attention(0, layer=1).to_numpy().shape[0] == 3
    with attnstore.open(make_store("none.attn", keep__maps="none")) as store, pytest.raises(NotStored):
        store.attention(0)


def test_the_warnings_of_the_program_are_left_as_they_were(opened: attnstore.Store) -> None:
    # Every warning is an error here, as it may be in a user's program.
    assert len(asking.ask(opened, "heads/entropy", {}, None, 2)) == 2
    listed = "import sys, warnings; before = [*warnings.filters]; import attnstore.store.database"
    check = f"{listed}; sys.exit(any('Arrow' in str(one) for one in warnings.filters if one not in before))"
    assert subprocess.run([sys.executable, "-c", check], timeout=60).returncode == 0
