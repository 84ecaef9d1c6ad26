"""This file tests the shipped recipes, and the sentences that the demonstration ingests."""

from pathlib import Path

import pytest

from attnstore.job.recipe import Recipe
from attnstore.text import corpus
from attnstore.text.example import Example

INGEST = Path(__file__).resolve().parent.parent / "ingest"
RECIPES = sorted(INGEST.glob("*.toml"))
SENTENCES = INGEST / "quickstart" / "sentences.txt"


@pytest.fixture(scope="module")
def lines() -> list[str]:
    raw = SENTENCES.read_bytes()
    assert raw.endswith(b"\n")
    assert b"\r" not in raw
    return raw.decode("utf-8").removesuffix("\n").split("\n")


def test_there_are_enough_sentences_and_pairs(lines: list[str]) -> None:
    assert len(lines) >= 170
    assert sum("\t" in line for line in lines) >= 30


def test_a_line_is_one_text_or_two_without_blank_ones(lines: list[str]) -> None:
    for line in lines:
        parts = line.split("\t")
        assert len(parts) <= 2, line
        assert all(part == part.strip() != "" and "  " not in part for part in parts), line


def test_no_sentence_comes_twice(lines: list[str]) -> None:
    sentences = [part for line in lines for part in line.split("\t")]
    assert len(sentences) == len(set(sentences))


def test_every_sentence_starts_and_ends_as_one(lines: list[str]) -> None:
    for part in (part for line in lines for part in line.split("\t")):
        start, end = part.strip('"')[0], part.strip('"')[-1]
        assert start.isupper() or start.isdigit(), part
        assert end in ".?!", part
        assert part.count('"') % 2 == 0, part


def test_sentences_have_five_to_thirty_five_words(lines: list[str]) -> None:
    counts = {part: len(part.split()) for line in lines for part in line.split("\t")}
    assert {part: n for part, n in counts.items() if not 5 <= n <= 35} == {}
    assert min(counts.values()) <= 6
    assert max(counts.values()) >= 30


def test_the_second_sentence_of_a_pair_refers_back(lines: list[str]) -> None:
    pronouns = {"he", "him", "his", "she", "her", "it", "its", "they", "them", "their"}
    for line in (line for line in lines if "\t" in line):
        words = {word.strip('.,?!"').lower() for word in line.split("\t")[1].split()}
        assert words & pronouns, line


def test_some_sentences_leave_ascii(lines: list[str]) -> None:
    assert any(not line.isascii() for line in lines)
    assert sum(line.isascii() for line in lines) > 0.9 * len(lines)


def test_the_quickstart_recipe_runs_the_shipped_sentences_on_a_packaged_model() -> None:
    recipe = Recipe.read(INGEST / "quickstart.toml")
    (path,) = recipe.corpus.path
    assert recipe.folder / path == SENTENCES
    assert recipe.corpus.kind == "lines"
    assert recipe.model.name.startswith("package:")
    assert recipe.words.source.startswith("spacy:")


def test_the_lines_reader_takes_every_sentence(lines: list[str]) -> None:
    examples = list(corpus.read(corpus.Corpus("lines", (SENTENCES,))))
    assert all(isinstance(example, Example) for example in examples)
    texts = [[text for text in (e.text, e.second) if text] for e in examples if isinstance(e, Example)]
    assert texts == [line.split("\t") for line in lines]


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.name)
def test_a_shipped_recipe_is_valid_and_says_what_it_is(path: Path) -> None:
    recipe = Recipe.read(path)
    assert path.read_text(encoding="utf-8").startswith("# ")
    assert recipe.title
    assert recipe.corpus.licence
    assert all(not Path(pattern).is_absolute() for pattern in recipe.corpus.path)


def rows(page: str, heading: str) -> dict[str, list[str]]:
    """The cells of each row of the table under `heading`, by the name in backquotes in the first column."""
    section = page.split(f"## {heading}\n")[1].split("\n## ")[0]
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line.startswith("|")
    ]
    return {row[0].strip("`"): row[1:] for row in cells if row[0].startswith("`")}


def test_the_page_explains_every_kind_of_corpus() -> None:
    page = (INGEST / "README.md").read_text(encoding="utf-8")
    kinds = {*corpus.KINDS, *corpus.DRAWN, "arrays"}
    assert rows(page, "Kinds of corpora").keys() == kinds


def test_the_page_names_every_recipe() -> None:
    page = (INGEST / "README.md").read_text(encoding="utf-8")
    assert sorted(rows("## Recipes\n" + page, "Recipes")) == [path.name for path in RECIPES]
