"""Names and texts of a hostile store are shown as text, and nothing that it names is loaded or run."""

import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import attnstore
from attnstore.share.card import card
from attnstore.store.contents import read_contents
from tests.forging import repin
from tests.hostile.attack import SEGMENT, edited

EVIL = "<img src=x onerror=alert(1)>\x1b]0;owned\x07\x1b[2J\u202e</script>"


COLUMNS = {"examples": ("name", "text", "origin"), "tokens": ("text",), "words": ("form", "deprel")}


@pytest.fixture(scope="module")
def evil(tiny_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store whose title, model, names, texts, words and tokens are all hostile."""
    store = Path(shutil.copytree(tiny_store, tmp_path_factory.mktemp("evil") / "evil.attn"))
    for table, columns in (
        ("examples", ("name", "text", "origin")),
        ("tokens", ("text",)),
        ("words", ("form", "deprel")),
    ):
        path = store / SEGMENT / f"{table}.parquet"
        found = pq.read_table(path)
        for name in columns:
            values = [None if old is None else f"{EVIL}{n}" for n, old in enumerate(found[name].to_pylist())]
            found = found.set_column(found.column_names.index(name), name, pa.array(values, pa.string()))
        pq.write_table(found, path)

    def describe(value: dict[str, dict[str, object] | str]) -> None:
        value["title"] = EVIL
        value["model"] = {"name": EVIL, "revision": EVIL, "trust_remote_code": True, "auto_map": {"AutoModel": "x.Y"}}
        value["corpus"] = {**dict(value["corpus"]), "licence": EVIL, "license": EVIL}

    edited(store / "store.json", describe)
    return repin(store, files=True)


STEERS = ("\x1b", "\x07", "\u202e")
TAGS = ("<img", "<script")

PRINTED = (
    "info STORE",
    "verify STORE",
    "ask heads/entropy STORE",
    "ask relations/best STORE min_count=1",
    "sql STORE|select * from tokens",
    "sql STORE|select * from examples",
    'sql STORE|select form as "a\x1b[2J" from words',
    "sql STORE|select n_token from examples",
    "sql STORE --format markdown|select * from words",
    "sql STORE --format json|select text from examples",
    "show STORE 0 --layer 0 --head 0",
)
DRAWN = (
    "show STORE 0 --layer 0 --head 0 --format svg",
    "show STORE 0 --layer 0 --head 0 --format lines",
    "show STORE 0 --layer 0 --head 0 --format html",
    "show STORE heads/entropy --format svg",
    "show STORE heads/entropy --format html",
)


def some_slow(lines: Sequence[str]) -> list[Any]:
    """Every fifth is tried in the quick suite."""
    return [pytest.param(one, marks=pytest.mark.slow if n % 5 else ()) for n, one in enumerate(lines)]


def said(store: Path, line: str) -> str:
    """What a command prints, errors too."""
    words, _, statement = line.partition("|")
    order = [str(store) if word == "STORE" else word for word in words.split(" ")] + [statement] * bool(statement)
    run = subprocess.run(
        [sys.executable, "-c", "from attnstore.cli import main; main()", *order],
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert run.returncode in (0, 1), run.stderr
    return (run.stdout + run.stderr).decode()


@pytest.mark.parametrize(
    "line", [pytest.param(one, marks=pytest.mark.slow if n % 5 else ()) for n, one in enumerate(PRINTED)]
)
def test_nothing_that_is_printed_steers_a_terminal(evil: Path, line: str) -> None:
    told = said(evil, line)
    assert len(told) > 20 or line.startswith("verify")
    assert not [part for part in STEERS if part in (told if "json" not in line else told.replace("\u202e", ""))], told


@pytest.mark.parametrize(
    "line", [pytest.param(one, marks=pytest.mark.slow if n % 3 else ()) for n, one in enumerate(DRAWN)]
)
def test_nothing_that_is_drawn_has_tags_of_the_store(evil: Path, line: str) -> None:
    told = said(evil, line)
    assert "svg" in told or "<html" in told
    assert not [part for part in (*STEERS, *TAGS) if part in told], told


def test_notebooks_show_hostile_names_as_text(evil: Path) -> None:
    with attnstore.open(evil) as store:
        shown = [store, store.sql("select * from examples"), store.sql('select form as "<img src=x>" from words')]
        shown += [store.attention(0, layer=0, head=0), store.ask("heads/entropy")]
        for one in shown:
            html = one._repr_html_()
            assert len(html) > 50
            assert "<img" not in html
            assert "<script" not in html


def test_the_card_of_a_store_escapes_what_it_says(evil: Path) -> None:
    told = card(read_contents(evil))
    assert "owned" in told
    assert not [part for part in STEERS if part in told]
    # In the front matter they are quoted, and code shows what it holds as it is.
    parts = re.split(r"^```.*$", told.split("---\n", 2)[2], flags=re.MULTILINE)
    assert len(parts) % 2 == 1
    assert not [part for part in parts[::2] if re.search(r"(?<!\\)<(?!!-- Made by)", part)]


LOADS = """
import sys, attnstore
from attnstore.format.verify import verify
from attnstore.job.refresh import refresh
with attnstore.open(sys.argv[1]) as store:
    store.sql("from examples"), store.ask("heads/entropy"), store.attention(0, layer=0, head=0), repr(store)
verify(sys.argv[1], deep=True)
refresh(sys.argv[1], "token_masses")
bad = {"torch", "transformers", "safetensors", "antigravity", "this"} & set(sys.modules)
print(",".join(sorted(bad)))
"""


def test_what_a_store_names_is_neither_loaded_nor_run(evil: Path, tmp_path: Path) -> None:
    store = Path(shutil.copytree(evil, tmp_path / "named.attn"))

    def name(value: dict[str, dict[str, object]]) -> None:
        value["recipe"] = {**value["recipe"], "task": {"kind": "antigravity:fly"}}
        value["parser"] = {"name": "this", "kind": "spacy:this"}
        value["model"].update(name="https://127.0.0.1:9/model", files={"pytorch_model.bin": "0" * 64})

    edited(store / "store.json", name)
    repin(store)
    run = subprocess.run([sys.executable, "-c", LOADS, str(store)], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == ""
