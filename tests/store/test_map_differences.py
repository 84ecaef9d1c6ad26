"""Tests of how far the maps of two stores are apart."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from attnstore.errors import BadInput, NotFound, NotStored
from attnstore.format.manifest import Kept
from attnstore.store.comparison import Comparison, compare
from tests.store.comparing import by_hand, others, pair, tiny, turned_stores
from tests.store.making import KINDS, Floats, Made, Text, make_store, random_examples, random_maps, stored


@pytest.fixture(scope="module")
def turned(made: list[Made], tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Comparison, list[Made]]]:
    yield from turned_stores(made, tmp_path_factory.mktemp("turned"))


def test_maps_of_two_tokens_differ_as_computed_by_hand(tmp_path: Path) -> None:
    a = [tiny("e", ["x", "y"], [[1, 0], [0, 1]])]
    b = [tiny("e", ["x", "y"], [[0.5, 0.5], [0, 1]])]
    with pair(tmp_path, a, b) as comparison:
        (row,) = comparison.ask("compare/cosine", eps=0)
        # Dot product 1.5, squared lengths 2 and 1.5. Rows 1 are equal; rows 0 have the middle (3/4, 1/4).
        assert row["cosine"] == pytest.approx(1.5 / np.sqrt(3))
        assert row["tv"] == pytest.approx(0.25)
        to_middle = np.log(4 / 3), 0.5 * np.log(2 / 3) + 0.5 * np.log(2)
        assert row["js"] == pytest.approx(sum(to_middle) / 2 / 2)
        assert row["n"] == 1


def test_a_store_does_not_differ_from_itself(folder: Path) -> None:
    with compare(folder, folder) as comparison:
        for level in ("token", "word"):
            for row in comparison.ask("compare/cosine", level=level):
                assert (row["cosine"], row["js"], row["tv"]) == pytest.approx((1, 0, 0), abs=1e-7)
                assert row["n"] == 7
        for row in comparison.ask("compare/summary"):
            assert row["spearman"] == pytest.approx(1)
            assert (row["mean_difference"], row["n"]) == (pytest.approx(0), 6)
        for row in comparison.ask("compare/relations"):
            assert (row["difference"], row["gained"], row["lost"]) == (0, 0, 0)


def test_examples_in_another_order_are_compared_with_their_own(
    turned: tuple[Comparison, list[Made]], made: list[Made]
) -> None:
    comparison, other = turned
    found = comparison.ask("compare/cosine").to_arrow().to_pylist()
    for row in found:
        at = (row["layer"], row["head"])
        each = [by_hand(p.maps["encoder"][at], q.maps["encoder"][at]) for p, q in zip(made, other, strict=True)]
        assert (row["cosine"], row["js"], row["tv"]) == pytest.approx(np.mean(each, axis=0), rel=1e-5)
        assert row["n"] == 7
    assert len(found) == 6
    assert len({round(row["cosine"], 6) for row in found}) == 6
    assert comparison.pairs.pairs["example_b"].to_pylist() == [6, 5, 4, 3, 2, 1, 0]


@pytest.mark.slow
def test_rounded_weights_are_what_is_compared(made: list[Made], tmp_path: Path) -> None:
    other = others(made[:2])
    a, b = make_store(tmp_path / "a.attn", made[:2]), make_store(tmp_path / "b.attn", other)
    with compare(a, b) as comparison:
        row = next(iter(comparison.ask("compare/cosine", where="name = 'e1'")))
        maps = [stored(one.maps["encoder"])[0, 0] for one in (made[1], other[1])]
        assert (row["cosine"], row["js"], row["tv"]) == pytest.approx(by_hand(*maps), rel=1e-5)


def split_last(one: Made, rng: np.random.Generator) -> Made:
    """The example under another tokenizer: its last token that belongs to a word falls into two."""
    text = one.source
    at = max(index for index, word in enumerate(text.word) if word >= 0)
    twice = [0, *range(1, at), at, at, *range(at + 1, len(text.tokens))]
    tokens, special, word = ([column[i] for i in twice] for column in (text.tokens, text.special, text.word))
    n = len(twice)
    maps = {"encoder": random_maps(rng, 2, 3, n, n)}
    return replace(one, source=replace(text, tokens=tokens, special=special, word=word), maps=maps)


def words_by_hand(one: Made, layer: int, head: int) -> Floats:
    """The map between the words that have tokens: columns of pieces added, rows of pieces averaged."""
    word, weights = np.array(one.source.word), one.maps["encoder"][layer, head].astype(float)
    numbers = sorted({*word.tolist()} - {-1})
    rows = [[weights[np.ix_(word == q, word == k)].sum(axis=1).mean() for k in numbers] for q in numbers]
    return np.asarray(rows, np.float32)


@pytest.mark.slow
def test_maps_of_two_tokenizers_are_compared_between_words(made: list[Made], tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    other = [split_last(one, rng) for one in made]
    a = make_store(tmp_path / "a.attn", made, precision="exact")
    b = make_store(tmp_path / "b.attn", other, precision="exact", per_segment=2)
    with compare(a, b) as comparison:
        with pytest.raises(BadInput, match=r"the same tokens: 'e0' has 6 in A and 7 in B.*level=word"):
            comparison.ask("compare/cosine")
        for row in comparison.ask("compare/cosine", level="word"):
            at = (row["layer"], row["head"])
            each = [by_hand(words_by_hand(p, *at), words_by_hand(q, *at)) for p, q in zip(made, other, strict=True)]
            assert (row["cosine"], row["js"], row["tv"]) == pytest.approx(np.mean(each, axis=0), rel=1e-4)
            assert row["n"] == 7
        assert [tuple(row.values()) for row in comparison.ask("compare/pairs")] == [("paired", "words", 7, "e0")]


def test_a_word_without_tokens_in_one_store_takes_no_part(tmp_path: Path) -> None:
    a = tiny("e", ["x", "y", "z"], [[0.2, 0.3, 0.5], [0.1, 0.1, 0.8], [0.6, 0.2, 0.2]])
    fewer = Text(["x", "y"], [None, None], [0, 1], a.source.words)  # z has none
    b = replace(a, source=fewer, maps={"encoder": np.array([[[[0.5, 0.5], [0.25, 0.75]]]], np.float32)})
    with pair(tmp_path, [a], [b]) as comparison:
        (row,) = comparison.ask("compare/cosine", level="word", eps=0)
        one, other = a.maps["encoder"][0, 0, :2, :2], b.maps["encoder"][0, 0]
        assert row["cosine"] == pytest.approx(by_hand(one, other)[0])
        assert row["tv"] == pytest.approx((abs(0.2 - 0.5) + abs(0.3 - 0.5) + abs(0.1 - 0.25) + abs(0.1 - 0.75)) / 4)


def test_a_map_that_is_zero_throughout_has_no_cosine(tmp_path: Path) -> None:
    # All weight lies on the special token, which word maps leave out.
    text = Text(["[CLS]", "x"], ["cls", None], [-1, 0], [{"form": "x"}])
    maps = {"encoder": np.array([[[[1, 0], [1, 0]]]], np.float32)}
    one = Made("e", text, maps)
    with pair(tmp_path, [one], [one]) as comparison:
        (row,) = comparison.ask("compare/cosine", level="word")
        assert row["cosine"] is None
        assert (row["js"], row["tv"], row["n"]) == (0, 0, 1)


@pytest.mark.slow
def test_stores_that_kept_too_little_are_refused(made: list[Made], tmp_path: Path) -> None:
    whole = make_store(tmp_path / "a.attn", made)
    for name, kept in {"none": Kept("none", None, None, None), "topk": Kept("topk", None, None, 2)}.items():
        place = make_store(tmp_path / name, made, kept=kept)
        with compare(whole, place) as comparison:
            with pytest.raises(NotStored, match=r"B kept .*whole maps of both"):
                comparison.ask("compare/cosine")
            assert len(comparison.ask("compare/heads")) == 48
    some = make_store(tmp_path / "some", made, kept=Kept("all", (1,), (0, 2), None))
    with compare(whole, some) as comparison:
        heads = [(row["layer"], row["head"]) for row in comparison.ask("compare/cosine")]
        assert heads == [(1, 0), (1, 2)]


def test_only_examples_that_both_conditions_leave_are_compared(
    turned: tuple[Comparison, list[Made]], made: list[Made]
) -> None:
    comparison, other = turned
    chosen = [index for index, one in enumerate(made) if len(one.source.words) < 7]
    assert 0 < len(chosen) < 7
    found = comparison.ask("compare/cosine", where="n_words < 7  -- short ones")
    each = [by_hand(made[i].maps["encoder"][0, 0], other[i].maps["encoder"][0, 0])[0] for i in chosen]
    first = next(iter(found))
    assert (first["cosine"], first["n"]) == (pytest.approx(np.mean(each), rel=1e-5), len(chosen))
    assert {row["n_a"] for row in comparison.ask("compare/heads", where="n_words < 7")} == {len(chosen)}
    assert len(comparison.ask("compare/cosine", where="n_words > 1000")) == 0
    assert len(comparison.ask("compare/relations", where="n_words > 1000")) == 0
    assert found.cite()["where"] == "n_words < 7  -- short ones"
    with pytest.raises(NotFound, match="'n_wrds'"):
        comparison.ask("compare/cosine", where="n_wrds < 7")


@pytest.mark.slow
def test_a_kind_has_to_be_in_both_stores(made: list[Made], tmp_path: Path) -> None:
    two = make_store(tmp_path / "two.attn", random_examples(1, (5, 6), KINDS), kinds=KINDS)
    one = make_store(tmp_path / "one.attn", made)
    with compare(two, two) as comparison:
        for kind in KINDS:
            for row in comparison.ask("compare/cosine", kind=kind):
                assert row["cosine"] == pytest.approx(1)
        with pytest.raises(NotFound, match="kind='deep'"):
            comparison.ask("compare/cosine", kind="deep")
    with compare(two, one) as comparison, pytest.raises(NotFound, match=r"B .* has no maps of kind cross"):
        comparison.ask("compare/cosine", kind="cross")


def test_maps_are_compared_once_for_questions_that_ask_the_same(
    turned: tuple[Comparison, list[Made]], monkeypatch: pytest.MonkeyPatch
) -> None:
    comparison, _ = turned
    expected = comparison.ask("compare/cosine", eps=0.02).to_arrow()
    monkeypatch.setattr("attnstore.store.compared.differences", lambda *_, **__: pytest.fail("computed again"))
    assert comparison.ask("compare/cosine", eps=0.02).to_arrow() == expected
