"""Tests of the choice of the best head: its directions, its held-out halves, its bootstrap intervals."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnstore.format.manifest import Kind
from attnstore.store.store import Store
from attnstore.store.store import open as open_store
from tests.queries.sentences import ONE, SYNTAX, one, pointing, sentence
from tests.store.making import ENCODER, Made, make_store, random_maps


@pytest.fixture(scope="module")
def syntax(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    text = sentence(["w1", "w2", "w3"], [(2, "nsubj:pass"), (0, "obj"), (None, "root")])
    root = make_store(tmp_path_factory.mktemp("s") / "s.attn", [one(text, SYNTAX)], kinds=ONE, precision="exact")
    with open_store(root) as opened:
        yield opened


def test_the_best_head_comes_with_its_baseline(syntax: Store) -> None:
    # The map predicts as governors of w1 w2 w3 (from 0): by rows 2, 0, 0, by columns 2, 2, 0.
    rows = {row["relation"]: row for row in syntax.ask("relations/best")}
    assert set(rows) == {"all", "nsubj:pass", "obj"}  # the root is not listed
    assert (rows["all"]["direction"], rows["all"]["accuracy"]) == ("dep_to_head", pytest.approx(2 / 3))
    assert (rows["all"]["baseline"], rows["all"]["offset"]) == (pytest.approx(1 / 3), -3)
    assert rows["obj"] == {
        "relation": "obj",
        "n": 1,
        "layer": 0,
        "head": 0,
        "direction": "dep_to_head",
        "accuracy": 1.0,
        "baseline": 1.0,
        "offset": -1,
        "head_label": "1-1",
        "derived": False,
        "accuracy_low": None,
        "accuracy_high": None,
        "gain": 0.0,
        "gain_low": None,
        "gain_high": None,
    }
    assert rows["nsubj:pass"]["direction"] == "dep_to_head"  # a tie


def test_the_governors_row_is_a_direction_only_where_one_asks_for_it(tmp_path: Path) -> None:
    # c depends on a and looks at b; a looks at c. Columns: c is looked at by a; so only the rows of c are wrong.
    parse = [(None, "root"), (0, "x"), (0, "obj")]
    maps = pointing([0, 3, 3, 2, 4])
    maps[2, 3] += 0.05  # b's row gives c more than a's
    with open_store(make_store(tmp_path / "d.attn", [one(sentence(["a", "b", "c"], parse), maps)], kinds=ONE)) as store:
        (row,) = store.ask("relations/best", relation="obj")
        assert (row["direction"], row["accuracy"]) == ("dep_to_head", 0.0)
        (row,) = store.ask("relations/best", relation="obj", directions="all")
        assert (row["direction"], row["accuracy"]) == ("head_row", 1.0)


def test_the_held_out_choice_is_made_on_even_examples_and_scored_on_odd_ones(tmp_path: Path) -> None:
    kinds = {"encoder": Kind(1, 2, 2, "source", "source", False)}
    # Head 0 is right on the even example only, head 1 on both odd ones; so is the offset +1 on the even one.
    right, wrong = pointing([0, 2, 1, 3, 4]), pointing([0, 3, 1, 1, 4])
    made = []
    for number, (governor, first, second) in enumerate([(1, right, wrong), (2, right, wrong), (2, right, wrong)]):
        parse = [(governor, "det"), (None, "root"), (1, "x")]
        maps = np.asarray([[first, second]], np.float32)
        made.append(Made(f"m{number}", sentence(["a", "b", "c"], parse), {"encoder": maps}))
    with open_store(make_store(tmp_path / "h.attn", made, kinds=kinds, precision="exact")) as store:
        # Governor of a: 1, 2, 2 by example; head 0 says 1, head 1 says 2. Offsets +1 and +2 say the same.
        (row,) = store.ask("relations/best", relation="det")
        assert (row["head"], row["accuracy"], row["n"], row["offset"]) == (1, pytest.approx(2 / 3), 3, 2)
        # Examples 0 and 2 are even, one right for either head: the lower one is chosen, and is wrong on example 1.
        (row,) = store.ask("relations/best", relation="det", held_out="odd")
        assert (row["head"], row["accuracy"], row["n"]) == (0, 0.0, 1)
        assert (row["offset"], row["baseline"]) == (1, 0.0)
        # Chosen on example 1, where head 1 is right and +2: on the others both are right once in two.
        (row,) = store.ask("relations/best", relation="det", held_out="even")
        assert (row["head"], row["accuracy"], row["n"]) == (1, 0.5, 2)
        assert (row["offset"], row["baseline"]) == (2, 0.5)


@pytest.mark.parametrize(
    ("columns", "halves"),
    [
        ([{}, {}, {}, {}], [0, 1, 0, 1]),  # each on its own
        ([{"document": name} for name in "aabc"], [0, 0, 1, 0]),
        ([{"document": name} for name in "abab"], [0, 1, 0, 1]),
        ([{"document": "a"}, {"document": "a"}, {}, {}], [0, 0, 1, 0]),
        ([{"pair_id": "p"}, {"pair_id": "q"}, {"pair_id": "p"}, {"pair_id": "r"}], [0, 1, 0, 0]),
        ([{"document": "2"}, {"pair_id": "2"}, {}, {}], [0, 1, 0, 1]),  # equal names of unlike things
        ([{"document": "a"}] * 4, [0, 1, 0, 1]),  # one document only: its examples take turns
    ],
)
def test_halves_keep_together_what_belongs_together(
    tmp_path: Path, columns: Sequence[Mapping[str, Any]], halves: list[int]
) -> None:
    made = [
        Made(f"e{number}", sentence(["a"]), {"encoder": np.full((1, 1, 3, 3), 1 / 3, np.float32)}, columns=own)
        for number, own in enumerate(columns)
    ]
    with open_store(make_store(tmp_path / "h.attn", made, kinds=ONE)) as store:
        assert [row["half"] for row in store.sql("select half from halves order by example")] == halves


N_SENTENCES = 12


@pytest.fixture(scope="module")
def random(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, list[Made]]]:
    """Twelve sentences of four to nine words with random maps and parses, of six documents."""
    rng = np.random.default_rng(7)
    made = []
    for number in range(N_SENTENCES):
        n = int(rng.integers(4, 10))
        parse = [(None if w == 0 else int(rng.integers(w)), "root" if w == 0 else "ab"[w % 2]) for w in range(n)]
        maps = random_maps(rng, ENCODER.layers, ENCODER.heads, n + 2, n + 2)
        text = sentence([f"w{w}" for w in range(n)], parse)
        made.append(Made(f"e{number}", text, {"encoder": maps}, columns={"document": f"d{number // 2}"}))
    with open_store(make_store(tmp_path_factory.mktemp("r") / "r.attn", made, precision="exact")) as opened:
        yield opened, made


def _right(made: Sequence[Made], row: Mapping[str, Any]) -> tuple[list[list[bool]], list[list[bool]]]:
    """For each sentence, whether the head and the offset of an answer are right about each of its dependents."""
    by_head, by_offset = [], []
    for example in made:
        inner = example.maps["encoder"][row["layer"], row["head"], 1:-1, 1:-1].astype(float)
        np.fill_diagonal(inner, 0)
        heads, offsets = [], []
        for word, parsed in enumerate(example.source.words):
            if row["relation"] not in ("all", parsed["deprel"]):
                continue
            governor = parsed["governor"]
            if governor is None:
                heads.append(False)
            elif row["direction"] == "head_row":
                heads.append(inner[governor].argmax() == word)
            else:
                heads.append(
                    (inner[word] if row["direction"] == "dep_to_head" else inner[:, word]).argmax() == governor
                )
            predicted = max(-1, min(len(inner) - 1, word + row["offset"]))
            offsets.append(predicted == (-1 if governor is None else governor))
        by_head.append(heads)
        by_offset.append(offsets)
    return by_head, by_offset


@pytest.mark.parametrize("held_out", ["no", "odd", "even"])
def test_the_intervals_are_those_of_a_bootstrap_over_the_scored_sentences(
    random: tuple[Store, list[Made]], held_out: str
) -> None:
    store, made = random
    # Documents of two sentences take turns.
    scored = [one for number, one in enumerate(made) if held_out == "no" or number // 2 % 2 == (held_out == "odd")]
    asked = {"bootstrap": 40, "seed": 5, "held_out": held_out, "directions": "all"}
    rows = list(store.ask("relations/best", **asked))
    assert {row["relation"] for row in rows} == {"all", "a", "b"}
    n = len(scored)

    def drawn(resample: int, draw: int) -> int:
        # DuckDB's md5_number_lower is the second half of the digest, least byte first.
        digest = hashlib.md5(f"5/{resample}/{draw + 1}".encode()).digest()
        return int.from_bytes(digest[8:], "little") % n

    draws = [[drawn(resample, draw) for draw in range(n)] for resample in range(40)]
    for row in rows:
        by_head, by_offset = _right(scored, row)
        assert row["n"] == sum(map(len, by_head))
        assert row["accuracy"] == pytest.approx(sum(map(sum, by_head)) / row["n"])
        assert row["baseline"] == pytest.approx(sum(map(sum, by_offset)) / row["n"])
        assert row["gain"] == pytest.approx(row["accuracy"] - row["baseline"])
        accuracies, gains = [], []
        for numbers in draws:
            heads = [hit for number in numbers for hit in by_head[number]]
            offsets = [hit for number in numbers for hit in by_offset[number]]
            accuracies.append(np.mean(heads))
            gains.append(np.mean(heads) - np.mean(offsets))
        expected = [*np.percentile(accuracies, [2.5, 97.5]), *np.percentile(gains, [2.5, 97.5])]
        found = [row[name] for name in ("accuracy_low", "accuracy_high", "gain_low", "gain_high")]
        assert found == pytest.approx(expected, abs=1e-12)


def test_the_bootstrap_is_the_same_for_a_seed_and_another_for_another(random: tuple[Store, list[Made]]) -> None:
    store, _ = random

    def lows(**asked: Any) -> list[float]:
        return [row["accuracy_low"] for row in store.ask("relations/best", bootstrap=25, **asked)]

    assert lows() == lows(seed=0)
    assert lows() != lows(seed=1)
    # Asked alone, a relation is resampled as among the others.
    (row,) = store.ask("relations/best", bootstrap=25, relation="b")
    everything = {row["relation"]: row for row in store.ask("relations/best", bootstrap=25)}
    assert row == everything["b"]


def test_one_sentence_leaves_nothing_to_resample(syntax: Store) -> None:
    rows = {row["relation"]: row for row in syntax.ask("relations/best", bootstrap=10)}
    for row in rows.values():
        assert (row["accuracy_low"], row["accuracy_high"]) == (row["accuracy"], row["accuracy"])
        assert (row["gain_low"], row["gain_high"]) == (pytest.approx(row["gain"]), pytest.approx(row["gain"]))
    assert len(rows) == 3
