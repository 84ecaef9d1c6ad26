"""This file tests what `needs:` of a header says: always, for one choice of a parameter, or for several."""

from pathlib import Path

import pytest

from attnstore.catalogue.declared import Need
from attnstore.catalogue.question import load
from attnstore.errors import BadQuestion


def needs(tmp_path: Path, text: str) -> tuple[Need, ...]:
    path = tmp_path / "mine.sql"
    path.write_text(f"-- Mine.\n-- needs: {text}\n-- params: x text in (a, b, c) = null\nselect $x\n", encoding="utf-8")
    return load(path, "mine", own=True).needs


def test_a_need_holds_always_or_for_one_choice_or_for_several(tmp_path: Path) -> None:
    found = needs(tmp_path, "words, tags if x=a, head_weights if x in (b, c)")
    assert found == (Need("words"), Need("tags", "x", ("a",)), Need("head_weights", "x", ("b", "c")))
    held = {value: [need.holds({"x": value}) for need in found] for value in ("a", "b", "c", None)}
    assert held == {"a": [1, 1, 0], "b": [1, 0, 1], "c": [1, 0, 1], None: [1, 0, 0]}


@pytest.mark.parametrize(
    ("text", "expected"),
    [("tags if x in b", "`\\(`"), ("tags if x in (b c)", "`\\)`"), ("tags if x", "`=`"), ("tags if y=a", "x")],
)
def test_a_choice_that_is_not_written_out_is_an_error_with_its_line(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(BadQuestion, match=f"mine.sql, line 2.*expected.*{expected}"):
        needs(tmp_path, text)
