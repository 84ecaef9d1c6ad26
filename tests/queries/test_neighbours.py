"""Tests of the questions about single heads against plain NumPy, and against answers worked out by hand."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnstore.errors import NotStored
from attnstore.format.manifest import Kind
from attnstore.store.store import Store
from attnstore.store.store import open as open_store
from tests.queries.sentences import ONE, one, sentence
from tests.queries.three_kinds import CLASSES, KIND, MODE, Floats, X, averaged, examples, rows_of, side
from tests.store.making import KINDS, Made, Text, make_store


@pytest.fixture(scope="module")
def made() -> list[Made]:
    return examples()


@pytest.fixture(scope="module")
def store(made: list[Made], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    root = make_store(tmp_path_factory.mktemp("n") / "n.attn", made, kinds=KINDS, precision="exact")
    with open_store(root) as opened:
        yield opened


# --- heads/transfer


@MODE
@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_transfer_is_that_of_plain_numpy(store: Store, made: list[Made], kind: str, mode: str) -> None:
    per_row: dict[str, Any] = {
        "effective_keys": lambda p: np.exp(-sum(w * np.log(w) for w in p if w > 0)),
        "inverse_square": lambda p: 1 / (p**2).sum(),
        "top1": lambda p: p.max(),
        "top": lambda p: sorted(p)[-1] + sorted(p)[-2],
        "keys_above": lambda p: sum(w > 0.2 for w in p),
    }
    found = {
        (row["statistic"], row["layer"] * KINDS[kind].heads + row["head"]): row
        for row in store.ask("heads/transfer", kind=kind, mode=mode, top=2, above=0.2)
    }
    counts = [float(rows_of(item, kind).shape[1]) for item in made]
    for name, of_row in per_row.items():
        sums = [np.array([sum(map(of_row, own)) for own in rows_of(item, kind)]) for item in made]
        for head, value in enumerate(averaged(sums, counts, mode)):
            assert found[name, head]["value"] == pytest.approx(value, rel=1e-5)
            assert found[name, head]["n"] == len(made)
    assert len(found) == 5 * KINDS[kind].layers * KINDS[kind].heads


def test_equal_weights_on_four_keys_are_four_effective_keys(tmp_path: Path) -> None:
    weights = np.full((4, 4), 0.25)
    made = [one(sentence(["a", "b"]), weights)]
    with open_store(make_store(tmp_path / "u.attn", made, kinds=ONE, precision="exact")) as store:
        found = {row["statistic"]: row["value"] for row in store.ask("heads/transfer", top=3, above=0.25)}
    # A weight that equals `above` is not over it.
    expected = {"effective_keys": 4, "inverse_square": 4, "top1": 0.25, "top": 0.75, "keys_above": 0}
    assert found == pytest.approx(expected, rel=1e-6)


# --- heads/flow


@MODE
@KIND
@pytest.mark.parametrize("classes", CLASSES)
def test_flow_is_that_of_plain_numpy(store: Store, made: list[Made], kind: str, mode: str, classes: str) -> None:
    masses: dict[tuple[str, str], list[Floats]] = {}
    chances: dict[tuple[str, str], list[float]] = {}
    counts: dict[str, list[int]] = {}
    names: set[str] = set()
    for item in made:
        text = side(item, kind)
        own = [
            special or CLASSES[classes](token, {"part": 0, **text.words[word]} if word >= 0 else None, token in ".,")
            for token, special, word in zip(text.tokens, text.special, text.word, strict=True)
        ]
        names |= set(own)
        weights = rows_of(item, kind)
        n = len(own)
        uniform = np.tril(np.ones((n, n))) if KINDS[kind].causal else np.ones((n, n))
        uniform /= uniform.sum(axis=1, keepdims=True)
        for query_class in set(own):
            rows = [i for i in range(n) if own[i] == query_class]
            counts.setdefault(query_class, []).append(len(rows))
            for key_class in classes_of(made, kind, classes):
                keys = [j for j in range(n) if own[j] == key_class]
                block = np.ix_(rows, keys)
                masses.setdefault((query_class, key_class), []).append(
                    np.array([head[block].sum() for head in weights])
                )
                chances.setdefault((query_class, key_class), []).append(float(uniform[block].sum()))
    asked = store.ask("heads/flow", kind=kind, mode=mode, classes=classes)
    found = {
        (row["query_class"], row["key_class"], row["layer"] * KINDS[kind].heads + row["head"]): row for row in asked
    }
    assert {key[:2] for key in found} <= set(masses)
    for (query_class, key_class), sums in masses.items():
        weight = averaged(sums, counts[query_class], mode)
        chance = averaged([np.array(value) for value in chances[query_class, key_class]], counts[query_class], mode)
        for head in range(len(weight)):
            row = found.get((query_class, key_class, head))
            if row is None:  # never together in one example
                assert weight[head] == chance == 0
                continue
            assert row["weight"] == pytest.approx(weight[head], rel=1e-5, abs=1e-9)
            assert row["chance"] == pytest.approx(float(chance), rel=1e-9, abs=1e-12)
            assert row["n"] == sum(counts[query_class])


def classes_of(made: list[Made], kind: str, classes: str) -> set[str]:
    """Every class that some token of the corpus has."""
    found = set()
    for item in made:
        text = side(item, kind)
        for token, special, word in zip(text.tokens, text.special, text.word, strict=True):
            own = {"part": 0, **text.words[word]} if word >= 0 else None
            found.add(special or CLASSES[classes](token, own, token in ".,"))
    return found


@MODE
@KIND
def test_what_one_class_of_queries_gives_sums_to_one(store: Store, kind: str, mode: str) -> None:
    total: dict[tuple[Any, ...], Floats] = {}
    for row in store.ask("heads/flow", kind=kind, mode=mode, classes="upos"):
        key = (row["layer"], row["head"], row["query_class"])
        total[key] = np.add(total.get(key, np.zeros(2)), [row["weight"], row["chance"]])
    assert len(total) > 6
    np.testing.assert_allclose(list(total.values()), 1, rtol=1e-5)


def test_the_flow_of_the_map_x_by_hand(tmp_path: Path) -> None:
    made = [one(sentence(["a", "b"]), X)]
    with open_store(make_store(tmp_path / "x.attn", made, kinds=ONE, precision="exact")) as store:
        found = {(row["query_class"], row["key_class"]): row for row in store.ask("heads/flow")}
    weights = {pair: row["weight"] for pair, row in found.items()}
    assert weights == pytest.approx(
        {
            **{("cls", "cls"): 0.1, ("cls", "other"): 0.5, ("cls", "sep"): 0.4},
            # Rows a and b: (.4 + .25) / 2, (.3 + .2 + .25 + .25) / 2, (.1 + .25) / 2.
            **{("other", "cls"): 0.325, ("other", "other"): 0.5, ("other", "sep"): 0.175},
            **{("sep", "cls"): 0.7, ("sep", "other"): 0.2, ("sep", "sep"): 0.1},
        },
        rel=1e-6,
    )
    assert {pair[1]: row["chance"] for pair, row in found.items()} == {"cls": 0.25, "other": 0.5, "sep": 0.25}
    assert [found["other", "sep"]["n"], found["sep", "sep"]["n"]] == [2, 1]


# --- heads/offsets


@MODE
@KIND
@pytest.mark.parametrize("reach", [0, 2, 16])
def test_offsets_are_those_of_plain_numpy(store: Store, made: list[Made], kind: str, mode: str, reach: int) -> None:
    asked = store.ask("heads/offsets", kind=kind, mode=mode, reach=reach)
    found = {(row["offset"], row["layer"] * KINDS[kind].heads + row["head"]): row for row in asked}
    expected = 0
    for offset in range(-reach, reach + 1):
        long = [rows_of(item, kind) for item in made if rows_of(item, kind).shape[1] > abs(offset)]
        if not long:
            continue
        pairs = [[(i, i + offset) for i in range(own.shape[1]) if 0 <= i + offset < own.shape[1]] for own in long]
        sums = [
            np.array([sum(head[cell] for cell in cells) for head in own])
            for own, cells in zip(long, pairs, strict=True)
        ]
        for head, value in enumerate(averaged(sums, [len(cells) for cells in pairs], mode)):
            assert found[offset, head]["weight"] == pytest.approx(value, rel=1e-5, abs=1e-9)
            assert found[offset, head]["n"] == len(long)
            expected += 1
    assert len(found) == expected


def test_offsets_one_are_the_next_and_the_previous_token_of_the_map_x(tmp_path: Path) -> None:
    made = [one(sentence(["a", "b"]), X)]
    with open_store(make_store(tmp_path / "x.attn", made, kinds=ONE, precision="exact")) as store:
        found = {row["offset"]: row["weight"] for row in store.ask("heads/offsets")}
    expected = {-3: 0.7, -2: 0.175, -1: 0.25, 0: 0.1875, 1: 0.65 / 3, 2: 0.2, 3: 0.4}
    assert found == pytest.approx(expected, rel=1e-6)


# --- heads/sinks


@KIND
def test_sinks_are_those_of_plain_numpy(store: Store, made: list[Made], kind: str) -> None:
    asked = store.ask("heads/sinks", kind=kind, threshold=0.2)
    found = {(row["sink"], row["layer"] * KINDS[kind].heads + row["head"]): row for row in asked}
    places: dict[str, Any] = {
        "first": lambda text: [0],
        "cls": lambda text: [j for j, name in enumerate(text.special) if name == "cls"],
        "sep": lambda text: [j for j, name in enumerate(text.special) if name == "sep"],
        "punct": lambda text: [j for j, token in enumerate(text.tokens) if token in (".", ",")],
    }
    for sink, where in places.items():
        per_example = []
        for item in made:
            weights, keys = rows_of(item, kind), where(side(item, kind, "keys"))
            if not keys:
                continue
            chosen = weights[:, :, keys].sum(axis=1).argmax(axis=1)
            own = []
            for head, index in enumerate(chosen):
                key = keys[index]
                rows = weights[head, key if KINDS[kind].causal else 0 :, key]
                own.append(rows.mean())
            per_example.append(own)
        if not per_example:
            assert (sink, 0) not in found
            continue
        values = np.array(per_example)
        for head in range(values.shape[1]):
            row = found[sink, head]
            assert row["weight"] == pytest.approx(values[:, head].mean(), rel=1e-5)
            assert row["share"] == pytest.approx((values[:, head] > 0.2).mean())
            assert row["n"] == len(values)


def test_the_last_comma_of_a_causal_text_is_no_sink_for_want_of_later_tokens(tmp_path: Path) -> None:
    # The comma at 1 gets .5 + .6 + .8 in all, .6333 a row; the full stop at 3 gets all of its own row, which is one.
    causal = {"decoder": Kind(1, 1, 1, "source", "source", True)}
    weights = np.array([[1, 0, 0, 0], [0.5, 0.5, 0, 0], [0.1, 0.6, 0.3, 0], [0, 0, 0, 1]], np.float32)
    weights[3] = [0, 0.8, 0, 0.2]
    text = Text(["a", ",", "b", "."], [None] * 4, [0, 1, 2, 3], sentence(["a", ",", "b", "."]).words)
    last = weights.copy()
    last[3] = [0.1, 0.1, 0, 0.8]
    made = [Made("x", text, {"decoder": weights[None, None]}), Made("y", text, {"decoder": last[None, None]})]
    with open_store(make_store(tmp_path / "c.attn", made, kinds=causal, precision="exact")) as store:
        found = {row["sink"]: row for row in store.ask("heads/sinks", threshold=0.5)}
    # In the other text the comma gets 1.2 in all, .4 a row, and the full stop .8 of the one row that sees it.
    assert found["punct"]["weight"] == pytest.approx((1.9 / 3 + 0.4) / 2, rel=1e-6)
    assert found["punct"]["share"] == 0.5
    assert found["first"]["weight"] == pytest.approx((1.6 / 4 + 1.7 / 4) / 2, rel=1e-6)
    assert set(found) == {"first", "punct"}


def test_sinks_of_a_cross_map_are_tokens_of_the_other_text(store: Store, made: list[Made]) -> None:
    found = {(row["sink"], row["layer"] * 2 + row["head"]): row for row in store.ask("heads/sinks", kind="cross")}
    mean = np.mean([rows_of(item, "cross")[:, :, 0].mean(axis=1) for item in made], axis=0)
    assert [found["first", head]["weight"] for head in range(6)] == pytest.approx(list(mean), rel=1e-5)


# --- heads/streaming


@MODE
@KIND
def test_streaming_is_that_of_plain_numpy(store: Store, made: list[Made], kind: str, mode: str) -> None:
    sums, counts = [], []
    for item in made:
        weights = rows_of(item, kind)
        n = weights.shape[1]
        inside = [(i, j) for i in range(n) for j in range(n) if j < 1 or abs(i - j) < 3]
        sums.append(np.array([sum(head[cell] for cell in inside) for head in weights]))
        counts.append(float(n))
    expected = averaged(sums, counts, mode)
    middle = float(np.median(expected))
    asked = store.ask("heads/streaming", kind=kind, mode=mode, first=1, recent=3, threshold=middle)
    assert [row["weight"] for row in asked] == pytest.approx(list(expected), rel=1e-5)
    assert [row["role"] for row in asked] == ["streaming" if value >= middle else "retrieval" for value in expected]
    assert {row["role"] for row in asked} == {"streaming", "retrieval"}


def test_a_window_that_holds_all_tokens_makes_every_head_stream(store: Store) -> None:
    for row in store.ask("heads/streaming"):
        assert (row["weight"], row["role"]) == (pytest.approx(1, abs=1e-5), "streaming")


# --- what all of them do where there is nothing to say

NOTHING = ["heads/transfer", "heads/flow", "heads/offsets", "heads/sinks", "heads/streaming", "patterns/maps"]


@pytest.mark.parametrize("question", [*NOTHING, "relations/trees", "probe/features"])
def test_no_example_gives_no_row(store: Store, question: str) -> None:
    assert len(store.ask(question, where="false")) == 0


@pytest.mark.parametrize("question", ["heads/flow", "heads/offsets", "heads/streaming", "relations/trees"])
def test_cross_maps_have_no_rows_where_the_help_says_so(store: Store, question: str) -> None:
    assert len(store.ask(question, kind="cross")) == 0


@pytest.mark.parametrize("question", NOTHING)
def test_one_token_without_words_is_no_error_and_no_nan(question: str, tmp_path: Path) -> None:
    made = [one(Text(["a"], [None], [-1]), [[1.0]])]
    with open_store(make_store(tmp_path / "o.attn", made, kinds=ONE, precision="exact")) as store:
        found = store.ask(question)
        assert len(found) > 0
        for row in found:
            assert not any(isinstance(value, float) and np.isnan(value) for value in row.values())


@pytest.mark.parametrize("question", ["relations/trees", "probe/features"])
def test_a_store_without_parses_is_told_what_to_do(question: str, tmp_path: Path) -> None:
    with (
        open_store(make_store(tmp_path / "p.attn", [one(sentence(["a", "b"]), X)], kinds=ONE)) as store,
        pytest.raises(NotStored, match="annotate STORE --words"),
    ):
        store.ask(question)
