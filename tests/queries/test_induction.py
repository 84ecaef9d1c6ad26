"""Tests of induction/scores against plain NumPy, and against answers worked out by hand."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnstore.format.manifest import Kind
from attnstore.store.store import Store
from attnstore.store.store import open as open_store
from tests.store.making import Floats, Made, Text, make_store, random_maps

CAUSAL = {"decoder": Kind(2, 2, 2, "source", "source", True)}
SCORES = ("previous", "duplicate", "induction")


def text_of(tokens: str, start: Sequence[str] = ()) -> Text:
    """Tokens without words, behind special ones."""
    own = tokens.split()
    return Text([*start, *own], [*["bos"] * len(start), *[None] * len(own)], [-1] * (len(start) + len(own)))


def made_of(name: str, text: Text, maps: Floats, kind: str = "decoder", **columns: Any) -> Made:
    return Made(name, text, {kind: maps}, columns=columns)


def texts(seed: int) -> list[Made]:
    """Two texts of repeated tokens, one of them behind [BOS], and three others, of which one repeats no token."""
    rng = np.random.default_rng(seed)
    told: list[tuple[str, Text, dict[str, Any]]] = [
        ("r1", text_of("d a c b d a c b"), {"condition": "repeated_random"}),
        ("n1", text_of("the cat and the dog and the cat ran"), {"condition": "clean"}),
        ("r2", text_of("a b c a b c", ["<s>"]), {"condition": "repeated_random"}),
        ("n2", text_of("so so so it was so", ["<s>"]), {}),
        ("n3", text_of("one two three"), {}),
    ]
    return [
        made_of(name, text, random_maps(rng, 2, 2, len(text.tokens), len(text.tokens), causal=True), **columns)
        for name, text, columns in told
    ]


@pytest.fixture(scope="module")
def made() -> list[Made]:
    return texts(11)


@pytest.fixture(scope="module")
def store(made: list[Made], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    root = make_store(tmp_path_factory.mktemp("i") / "i.attn", made, kinds=CAUSAL, precision="exact", per_segment=2)
    with open_store(root) as opened:
        yield opened


def pattern_of(text: Text, score: str) -> Floats:
    """The 0/1 matrix of a pattern, cell by cell."""
    n = len(text.tokens)
    found = np.zeros((n, n), np.float32)
    for i in range(n):
        for j in range(i):
            of_text = text.special[i] is None and text.special[j] is None
            earlier = j - 1 if score == "induction" else j
            is_copy = earlier >= 0 and text.special[earlier] is None and text.tokens[earlier] == text.tokens[i]
            found[i, j] = of_text and (j == i - 1 if score == "previous" else is_copy)
    return found


def share(weights: Floats, item: Made, score: str, method: str) -> tuple[float, float] | None:
    """A score of one map of one example as numerator and denominator; None where the pattern has no pair."""
    pattern = pattern_of(item.source, score)
    if not pattern.any():
        return None
    queries = [i for i, name in enumerate(item.source.special) if name is None]
    rows, wanted = weights[queries].astype(float), pattern[queries]
    if item.name.startswith("r"):
        return float((rows * wanted).sum()), float(wanted.sum())
    if method == "mul":
        return float((rows * wanted).sum()), float(rows.sum())
    return float((1 - np.abs(rows - wanted).sum(axis=1)).sum()), float(len(queries))


def averaged(shares: Sequence[tuple[float, float]], mode: str) -> float:
    if mode == "macro":
        return float(np.mean([above / below for above, below in shares]))
    return sum(above for above, _ in shares) / sum(below for _, below in shares)


@pytest.mark.parametrize("mode", ["macro", "micro"])
@pytest.mark.parametrize("method", ["mul", "abs"])
@pytest.mark.parametrize("corpus", ["auto", "repeated", "natural"])
def test_scores_are_those_of_plain_numpy(store: Store, made: list[Made], corpus: str, method: str, mode: str) -> None:
    chosen = [item for item in made if item.name.startswith("n" if corpus == "natural" else "r")]
    found = {
        (row["layer"], row["head"], row["score"]): row
        for row in store.ask("induction/scores", corpus=corpus, method=method, mode=mode)
    }
    assert set(found) == {(layer, head, score) for layer in (0, 1) for head in (0, 1) for score in SCORES}
    for (layer, head, score), row in found.items():
        uniform = [
            np.tril(np.ones(one.maps["decoder"].shape[2:])) / np.arange(1, len(one.source.tokens) + 1)[:, None]
            for one in chosen
        ]
        own = [share(item.maps["decoder"][layer, head], item, score, method) for item in chosen]
        even = [share(flat.astype(np.float32), item, score, method) for flat, item in zip(uniform, chosen, strict=True)]
        known = [item for item in own if item is not None]
        assert row["value"] == pytest.approx(averaged(known, mode), abs=1e-6)
        assert row["chance"] == pytest.approx(averaged([item for item in even if item is not None], mode), abs=1e-6)
        assert row["n"] == len(known)
        assert row["pairs"] == sum(int(pattern_of(item.source, score).sum()) for item in chosen)
        assert row["counted"] == pytest.approx(1, abs=1e-6)


def test_a_text_without_a_pair_does_not_count(store: Store) -> None:
    found = {row["score"]: row["n"] for row in store.ask("induction/scores", corpus="natural")}
    # "one two three" has only previous tokens.
    assert found == {"previous": 3, "duplicate": 2, "induction": 2}


def test_the_chance_of_induction_in_a_repeated_text(store: Store) -> None:
    # Behind [BOS], queries 4, 5, 6 of the second time see 5, 6 and 7 keys, of which one is right.
    (found,) = {row["chance"] for row in store.ask("induction/scores", where="name = 'r2'", mode="micro")
                if row["score"] == "induction"}  # fmt: skip
    assert found == pytest.approx((1 / 5 + 1 / 6 + 1 / 7) / 3)


def test_among_other_texts_only_auto_takes_them(store: Store) -> None:
    where = "name like 'n%'"
    assert list(store.ask("induction/scores", where=where)) == list(
        store.ask("induction/scores", where=where, corpus="natural")
    )
    assert list(store.ask("induction/scores", where=where, corpus="repeated")) == []
    assert list(store.ask("induction/scores", where="name = 'nobody'")) == []


def test_what_is_excluded_leaves_both_sides_and_counted_says_how_much(tmp_path: Path) -> None:
    # Rows (1), (.5 .5), (.2 .3 .5); previous pairs (1, 0) and (2, 1).
    weights = np.array([[1, 0, 0], [0.5, 0.5, 0], [0.2, 0.3, 0.5]], np.float32)
    made = made_of("x", text_of("a b c"), np.broadcast_to(weights, (2, 2, 3, 3)))
    with open_store(make_store(tmp_path / "x.attn", [made], kinds=CAUSAL, precision="exact")) as store:

        def asked(**params: Any) -> tuple[float, float, float]:
            row = next(row for row in store.ask("induction/scores", **params) if row["score"] == "previous")
            return row["value"], row["chance"], row["counted"]

        assert asked() == pytest.approx((0.8 / 3, (1 / 2 + 1 / 3) / 3, 1))
        left = 0.5 + 0.3 + 0.5
        assert asked(exclude_bos=True) == pytest.approx((0.3 / left, (1 / 3) / (7 / 6), left / 3))
        assert asked(exclude_current=True) == pytest.approx((0.8, (1 / 2 + 1 / 3) / (1 / 2 + 2 / 3), 1 / 3))
        # 1 - mean over rows of sum |A - D|: rows 1, .5 + .5, .2 + .7 + .5.
        assert asked(method="abs")[0] == pytest.approx(1 - (1 + 1 + 1.4) / 3)
        # Asked again, the map is what it was.
        assert asked() == pytest.approx((0.8 / 3, (1 / 2 + 1 / 3) / 3, 1))


def test_a_head_that_rests_on_the_first_token_has_no_score_without_it(tmp_path: Path) -> None:
    weights = np.zeros((2, 2, 3, 3), np.float32)
    weights[..., 0] = 1
    made = made_of("x", text_of("a a a"), weights)
    with open_store(make_store(tmp_path / "x.attn", [made], kinds=CAUSAL, precision="exact")) as store:
        for row in store.ask("induction/scores", exclude_bos=True):
            assert (row["value"], row["n"], row["counted"]) == (None, 0, 0)


def test_a_head_that_copies_stands_out(tmp_path: Path) -> None:
    maps = np.zeros((2, 2, 8, 8), np.float32)
    for i in range(8):
        maps[0, 0, i, max(i - 1, 0)] = 1
        maps[0, 1, i, max(i - 4, 0)] = 1
        maps[1, 0, i, max(i - 3, 0)] = 1
        maps[1, 1, i, 0] = 1
    made = made_of("x", text_of("a b c d a b c d"), maps, condition="repeated_random")
    with open_store(make_store(tmp_path / "x.attn", [made], kinds=CAUSAL, precision="exact")) as store:
        found = {(row["layer"], row["head"], row["score"]): row["value"] for row in store.ask("induction/scores")}
    assert {key for key, value in found.items() if value == 1} == {
        (0, 0, "previous"),
        (0, 1, "duplicate"),
        (1, 0, "induction"),
    }
    # Head 1-1 rests on the first token, which is the copy of one token and the one before another.
    assert found[1, 1, "duplicate"] == 1 / 4
    assert found[1, 1, "previous"] == pytest.approx(1 / 7)
    assert found[1, 1, "induction"] == 0


def test_a_model_that_sees_both_sides_has_copies_on_both_and_no_induction(tmp_path: Path, made: list[Made]) -> None:
    both = {"encoder": replace(CAUSAL["decoder"], causal=False)}
    rng = np.random.default_rng(3)
    maps = random_maps(rng, 2, 2, 6, 6)
    one = made_of("x", text_of("a b c a b c"), maps, "encoder", condition="repeated_random")
    with open_store(make_store(tmp_path / "b.attn", [one], kinds=both, precision="exact")) as store:
        found = {(row["layer"], row["head"], row["score"]): row for row in store.ask("induction/scores")}
    for (layer, head, score), row in found.items():
        own = maps[layer, head]
        if score == "induction":
            assert (row["value"], row["chance"], row["counted"], row["n"]) == (None, None, None, 0)
        else:
            offset = {"previous": -1, "next": 1, "duplicate": -3, "duplicate_after": 3}[score]
            assert row["value"] == pytest.approx(own.diagonal(offset).mean(), rel=1e-6)
            assert row["chance"] == pytest.approx(1 / 6)
    assert len(found) == 2 * 2 * 5


def test_a_text_of_one_token_has_no_score(tmp_path: Path) -> None:
    made = made_of("x", text_of("a"), np.ones((2, 2, 1, 1), np.float32))
    with open_store(make_store(tmp_path / "x.attn", [made], kinds=CAUSAL, precision="exact")) as store:
        found = list(store.ask("induction/scores"))
        assert {(row["score"], row["value"], row["n"]) for row in found} == {(score, None, 0) for score in SCORES}
