"""Tests of the roles of heads: positional and syntactic, by answers that are worked out in a comment."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attnstore.store.store import open as open_store
from tests.queries.sentences import ONE, one, pointing, sentence
from tests.store.making import make_store

PARSE = [(1, "nsubj"), (None, "root"), (0, "nsubj:pass"), (1, "case")]


def roles(path: Path, keys: Sequence[int], **asked: Any) -> dict[str, dict[str, Any]]:
    """The answer by role for one sentence a b c d, whose rows, special tokens included, look at these keys."""
    text = sentence(["a", "b", "c", "d"], PARSE, upos=["NOUN", "VERB", "NOUN", "ADP"])
    with open_store(make_store(path, [one(text, pointing(keys))], kinds=ONE, precision="exact")) as store:
        return {row["role"]: row for row in store.ask("heads/roles", **asked)}


def test_a_head_that_looks_back_by_one_is_positional(tmp_path: Path) -> None:
    # [CLS] and [SEP] look elsewhere, and are not asked.
    row = roles(tmp_path / "s.attn", [3, 0, 1, 2, 3, 0])["positional"]
    assert (row["value"], row["offset"], row["n"], row["holds"]) == (1.0, -1, 4, True)
    assert (row["relation"], row["direction"]) == (None, None)


def test_the_share_counts_the_most_frequent_offset_and_the_threshold_is_a_parameter(tmp_path: Path) -> None:
    # Offsets -1, -1, +2, -1.
    for number, (threshold, holds) in enumerate([(0.9, False), (0.75, True)]):
        row = roles(tmp_path / f"{number}.attn", [0, 0, 1, 5, 3, 5], positional=threshold)["positional"]
        assert (row["value"], row["offset"], row["holds"]) == (0.75, -1, holds)
    # -1, +1, +1, -1: a tie of equally near ones goes to the lower.
    assert roles(tmp_path / "tie.attn", [0, 0, 3, 4, 3, 5])["positional"]["offset"] == -1


def test_a_head_is_syntactic_by_what_it_gains_over_the_most_frequent_distance(tmp_path: Path) -> None:
    # Governors of nsubj: a -> b, c -> a: distances +1 and -2, each half of them. The head finds both.
    found = roles(tmp_path / "s.attn", [0, 2, 4, 1, 5, 5])["syntactic"]
    assert (found["value"], found["n"], found["offset"]) == (0.5, 2, 1)
    assert (found["relation"], found["direction"], found["holds"]) == ("nsubj", "dep_to_head", True)
    # Now only the governors' rows: b looks at a, and a at c.
    found = roles(tmp_path / "r.attn", [0, 3, 1, 5, 5, 5])["syntactic"]
    assert (found["value"], found["direction"]) == (0.5, "head_row")
    # `case` is not among the paper's four. Its one distance is always right, so that b's row, which finds d, gains
    # nothing; nor does a, which finds b, since c does not find a.
    found = roles(tmp_path / "a.attn", [0, 2, 4, 4, 3, 5], relations="all")["syntactic"]
    assert (found["relation"], found["direction"], found["value"]) == ("case", "head_row", 0.0)
    found = roles(tmp_path / "p.attn", [0, 2, 4, 4, 3, 5])["syntactic"]
    assert (found["relation"], found["direction"], found["value"]) == ("nsubj", "dep_to_head", 0.0)
    assert "syntactic" not in roles(tmp_path / "m.attn", [0, 2, 4, 1, 5, 5], min_count=3)
