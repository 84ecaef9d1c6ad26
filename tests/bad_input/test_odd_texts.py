"""What is odd about a text, and no error, is recorded: words without tokens, texts too long, letters of any kind."""

import json
from pathlib import Path

import pytest

from attnstore.errors import BadInput
from attnstore.format.verify import verify
from attnstore.job.run import estimate, ingest
from tests.bad_input.refusing import GOOD, LONG, recipe, refused


def test_a_word_without_a_token_is_counted(tmp_path: Path, model: Path) -> None:
    # A zero-width space is a word of this treebank, and nothing to the tokenizer.
    text = GOOD.replace("2\tcat", "2\t\u200b")
    (tmp_path / "a.conllu").write_text(text, encoding="utf-8")
    with ingest(recipe(tmp_path, model, "conllu", "a.conllu", words__source="gold"), tmp_path / "s") as store:
        words = {row["form"]: (row["n_tokens"], row["aligned"]) for row in store.sql("select * from words")}
        assert words == {"the": (1, "exact"), "\u200b": (0, "none")}
        counted = {(row["item"], row["state"]): row["n"] for row in store.ask("audit/coverage")}
        assert counted["word", "none"] == 1
    assert verify(tmp_path / "s", deep=True) == []


@pytest.mark.parametrize(
    ("way", "cuts", "skipped"),
    [
        ("window", ["whole", "window", "window"], []),
        ("truncate", ["whole", "truncated"], []),
        ("skip", ["whole"], [("a:2", "37 tokens, more than 24", "a.txt:2")]),
    ],
)
def test_a_text_that_is_too_long_is_recorded_as_what_became_of_it(
    tmp_path: Path, model: Path, way: str, cuts: list[str], skipped: list[tuple[str, str, str]]
) -> None:
    (tmp_path / "a.txt").write_text(f"the cat sat .\n{LONG}\n")
    wanted = recipe(tmp_path, model, "lines", "a.txt", encode__long=way)
    assert estimate(wanted).skipped == len(skipped)
    with ingest(wanted, tmp_path / "s") as store:
        rows = list(store.sql("select * from examples order by example"))
        assert [row["cut"] for row in rows] == cuts
        assert all(row["n_tokens"] <= 24 for row in rows)
        if way == "window":
            # Nothing of the text is lost between the windows.
            assert "".join("".join(row["text"].split()) for row in rows[1:]) == "".join(LONG.split())
        found = [(row["name"], row["reason"], row["origin"]) for row in store.sql("select * from skipped")]
        assert found == skipped
        states = {(row["item"], row["state"]): row["n"] for row in store.ask("audit/coverage")}
        assert states.get(("skipped", "37 tokens, more than 24"), 0) == len(skipped)
    assert verify(tmp_path / "s", deep=True) == []


def test_a_corpus_of_which_nothing_is_left_is_refused(standing: Path, model: Path) -> None:
    (standing.parent / "a.txt").write_text(f"{LONG}\n")
    wrong = recipe(standing.parent, model, "lines", "a.txt", encode__long="skip")
    refused(standing, wrong, BadInput, "no usable example", "37 tokens, more than 24")


ODD = ["a\0b", "\u200b", "  ", "a\u2028b", "\u65e5\u672c", "\U0001f600", "[SEP] [CLS] the cat", "\x1b[31mred", "a\rb"]
ODD += ["\u0130", "x" * 3000, "\ufeff", "\x0c", "'; drop table words; --", "%s {0}", "the\u0301 cat"]


def test_odd_texts_are_stored_as_they_are_or_skipped_with_a_reason(tmp_path: Path, model: Path) -> None:
    (tmp_path / "a.jsonl").write_text("\n".join(json.dumps({"text": text}) for text in ODD) + "\n")
    with ingest(recipe(tmp_path, model, "jsonl", "a.jsonl"), tmp_path / "s") as store:
        stored = {row["origin"]: row["text"] for row in store.sql("select origin, text from examples")}
        skipped = {row["origin"]: row["reason"] for row in store.sql("select * from skipped")}
        for line, text in enumerate(ODD, start=1):
            where = f"a.jsonl:{line}"
            assert stored.get(where) == text or skipped[where] in ("no token in its text", "its text is empty"), text
        assert len(stored) + len(skipped) == len(ODD)
        # "[SEP]" in a text is text.
        (number,) = (n for n, text in enumerate(stored.values()) if text.startswith("[SEP]"))
        tokens = store.sql("select special from tokens where example = $n order by token", n=number)
        assert [row["special"] for row in tokens if row["special"]] == ["cls", "sep"]
    assert verify(tmp_path / "s", deep=True) == []
