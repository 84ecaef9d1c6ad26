"""Tests of the questions about patterns of maps."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnstore.errors import NotFound
from attnstore.format.manifest import Kind
from attnstore.job.annotate_patterns import annotate_patterns
from attnstore.store.store import open as open_store
from tests.queries.sentences import ONE, one, sentence
from tests.store.making import KINDS, Made, Text, make_store, random_examples

NAMES = ["vertical", "diagonal", "vertical_diagonal", "block", "heterogeneous"]


def filled(vertical: float, neighbour: float, diagonal: float) -> np.ndarray:
    """A map of [CLS] and six words, and no [SEP]: every row has these shares on [CLS], neighbours and itself.

    What is left goes to two words that are neither. Rows at the ends have one neighbour; [CLS] looks at word 1 in place
    of its neighbour and itself, which are beside it or special, so means over the seven rows are 6/7 of the shares.
    """
    weights = np.zeros((7, 7))
    for row in range(1, 7):
        beside = [key for key in (row - 1, row + 1) if 1 <= key <= 6]
        far = [key for key in range(1, 7) if abs(key - row) > 1][:2]
        weights[row, 0] = vertical
        weights[row, beside] = neighbour / len(beside)
        weights[row, row] = diagonal
        weights[row, far] += max(1 - vertical - neighbour - diagonal, 0) / 2
    weights[0, 3] = 1
    return weights


def only_cls(weights: np.ndarray, **columns: Any) -> Made:
    text = sentence(list("abcdef"))
    made = one(Text(text.tokens[:-1], text.special[:-1], text.word[:-1], text.words), weights)
    return Made(made.name, made.source, made.maps, columns=columns)


@pytest.mark.parametrize(
    ("shares", "pattern"),
    [
        # Times 6/7 each.
        ((0.7, 0.1, 0.1), "vertical"),  # .6; .086
        ((0.7, 0.28, 0.0), "vertical"),  # .6; .24, under .25
        ((0.6, 0.3, 0.1), "vertical_diagonal"),  # .514; .257, over .25; together .857
        ((0.2, 0.3, 0.3), "diagonal"),  # .171; .514
        ((0.28, 0.1, 0.5), "diagonal"),  # .24; .514
        ((0.4, 0.1, 0.4), "vertical_diagonal"),  # .343; .429; .771
        ((0.5, 0.15, 0.15), "heterogeneous"),  # .429; .257; .686, under .7
        ((0.1, 0.2, 0.2), "heterogeneous"),  # nothing over its threshold
    ],
)
def test_a_pattern_follows_from_its_rule(shares: tuple[float, float, float], pattern: str, tmp_path: Path) -> None:
    with open_store(
        make_store(tmp_path / "p.attn", [only_cls(filled(*shares))], kinds=ONE, precision="exact")
    ) as store:
        (row,) = store.ask("patterns/features")
        measured = [row["vertical"], row["neighbour"], row["diagonal"]]
        assert measured == pytest.approx([6 / 7 * share for share in shares], abs=1e-6)
        assert row["pattern"] == pattern
        assert row["block"] is None
        exact = -np.where(filled(*shares) > 0, filled(*shares) * np.log(np.maximum(filled(*shares), 1e-300)), 0)
        assert row["spread"] == pytest.approx(exact.sum(axis=1).mean() / np.log(7), abs=1e-5)


def test_a_pair_of_texts_may_attend_in_blocks(tmp_path: Path) -> None:
    # Six words, three each; .9 spread over the own part, .1 on [CLS]: .9 less a share of 1/2. Neighbours and itself
    # get .9 * (2/3 for the middle word, 1/3 for the others) and .3 of the rows' weight.
    weights = np.zeros((7, 7))
    weights[:, 0] = 0.1
    for row in range(1, 7):
        weights[row, 1:4] = 0.3 if row < 4 else 0
        weights[row, 4:7] = 0.3 if row > 3 else 0
    weights[0, 1:] = 0.15
    text = sentence(list("abcdef"), part=[0, 0, 0, 1, 1, 1])
    pair = one(Text(text.tokens[:-1], text.special[:-1], text.word[:-1], text.words), weights)
    with open_store(make_store(tmp_path / "b.attn", [pair], kinds=ONE, precision="exact")) as store:
        (row,) = store.ask("patterns/features")
        assert row["block"] == pytest.approx(0.9 - 0.5)
        assert row["vertical"] == pytest.approx(0.1)
        # Neighbours .3 .6 .3 twice, and .15 from [CLS].
        assert row["neighbour"] == pytest.approx((2.4 + 0.15) / 7)
        assert row["diagonal"] == pytest.approx(1.8 / 7)
        # Neighbour and itself sum to .621: the diagonal comes before the block.
        assert row["pattern"] == "diagonal"


def test_a_block_without_a_diagonal_is_a_block(tmp_path: Path) -> None:
    # Sixteen words, eight each, all alike within the part: .1 on [CLS]; .9/8 on itself, at most .225 on neighbours.
    n = 16
    weights = np.zeros((n + 1, n + 1))
    weights[:, 0] = 0.1
    weights[1:9, 1:9] = weights[9:, 9:] = 0.9 / 8
    weights[0, 1:] = 0.9 / n
    text = sentence([f"w{k}" for k in range(n)], part=[0] * 8 + [1] * 8)
    pair = one(Text(text.tokens[:-1], text.special[:-1], text.word[:-1], text.words), weights)
    with open_store(make_store(tmp_path / "b.attn", [pair], kinds=ONE, precision="exact")) as store:
        (row,) = store.ask("patterns/features")
        assert (row["pattern"], row["block"]) == ("block", pytest.approx(0.4))


def labelled(labels: Sequence[str | None]) -> list[Made]:
    """Two layers of two heads: layer 0 vertical and diagonal, layer 1 diagonal and, for the first, vertical."""
    vertical, diagonal = filled(0.8, 0.1, 0.1), filled(0.1, 0.4, 0.4)
    made = []
    for number, label in enumerate(labels):
        last = diagonal if number else vertical
        maps = np.array([[vertical, diagonal], [diagonal, last]], np.float32)
        made.append(Made(f"e{number}", only_cls(vertical).source, {"encoder": maps}, columns={"label": label}))
    return made


SQUARE = {"encoder": Kind(2, 2, 2, "source", "source", False)}


def shares(found: Any) -> dict[tuple[Any, Any, str], tuple[float, int]]:
    return {(row["layer"], row["label"], row["pattern"]): (row["share"], row["n"]) for row in found}


def test_shares_of_patterns_by_layer_label_both_and_all(tmp_path: Path) -> None:
    with open_store(make_store(tmp_path / "s.attn", labelled(["yes", "no", "no", None]), kinds=SQUARE)) as store:
        found = store.ask("patterns/shares")
        assert [row["pattern"] for row in found] == NAMES * 2
        by_layer = shares(found)
        assert by_layer[0, None, "vertical"] == by_layer[0, None, "diagonal"] == (0.5, 8)
        assert by_layer[1, None, "vertical"] == (1 / 8, 8)
        assert by_layer[1, None, "diagonal"] == (7 / 8, 8)
        assert by_layer[1, None, "block"] == (0, 8)
        whole = shares(store.ask("patterns/shares", by="all"))
        assert whole[None, None, "vertical"] == (5 / 16, 16)
        by_label = shares(store.ask("patterns/shares", by="label"))
        assert by_label[None, "yes", "vertical"] == (0.5, 4)
        assert by_label[None, "no", "vertical"] == (0.25, 8)
        assert by_label[None, None, "vertical"] == (0.25, 4)
        both = shares(store.ask("patterns/shares", by="both"))
        assert both[1, "yes", "vertical"] == (0.5, 2)
        assert both[1, "no", "vertical"] == (0, 4)
        chosen = shares(store.ask("patterns/shares", by="all", where="label = 'yes'"))
        assert chosen[None, None, "vertical"] == (0.5, 4)


def test_shares_of_patterns_that_were_given_by_hand(tmp_path: Path) -> None:
    root = make_store(tmp_path / "s.attn", labelled(["yes", "no"]), kinds=SQUARE)
    table = tmp_path / "own.csv"
    table.write_text(
        "example,layer,head,pattern,annotator\n"
        "e0,0,0,block,ann\ne0,1,1,stripes,ann\ne1,0,0,block,ann\ne1,0,1,stripes,ann\ne1,0,1,block,bea\n",
        encoding="utf-8",
    )
    annotate_patterns(root, table)
    with open_store(root) as store:
        ann = store.ask("patterns/shares", labels="own", annotator="ann")
        assert [row["pattern"] for row in ann] == ["block", "stripes"] * 2
        assert shares(ann) == {
            (0, None, "block"): (2 / 3, 3),
            (0, None, "stripes"): (1 / 3, 3),
            (1, None, "block"): (0, 1),
            (1, None, "stripes"): (1, 1),
        }
        every = shares(store.ask("patterns/shares", labels="own", by="all"))
        assert every == {(None, None, "block"): (3 / 5, 5), (None, None, "stripes"): (2 / 5, 5)}


def test_patterns_of_one_example_layer_or_head(tmp_path: Path) -> None:
    with open_store(make_store(tmp_path / "s.attn", labelled(["yes", "no"]), kinds=SQUARE)) as store:
        found = store.ask("patterns/features")
        keys = [(row["example"], row["layer"], row["head"]) for row in found]
        assert keys == [(e, layer, head) for e in (0, 1) for layer in (0, 1) for head in (0, 1)]
        (row,) = store.ask("patterns/features", example=1, layer=0, head=1)
        assert (row["example"], row["label"], row["layer"], row["head"], row["pattern"]) == (1, "no", 0, 1, "diagonal")
        with pytest.raises(NotFound, match="example=9"):
            store.ask("patterns/features", example=9)


def test_no_maps_have_no_patterns(tmp_path: Path) -> None:
    made = random_examples(1, (5,), KINDS)
    with open_store(make_store(tmp_path / "k.attn", made, kinds=KINDS)) as store:
        for name in ("patterns/features", "patterns/shares"):
            assert len(store.ask(name, where="false")) == 0
            assert len(store.ask(name, kind="cross")) == 0
            assert len(store.ask(name, kind="decoder")) > 0
