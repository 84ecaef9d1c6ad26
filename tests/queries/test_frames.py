"""Tests of the question about heads that link a frame's elements to its target."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnstore.errors import NotStored
from attnstore.store.result import Result
from attnstore.store.store import Store
from attnstore.store.store import open as open_store
from tests.queries import plain
from tests.queries.sentences import ONE, SYNTAX, one, sentence
from tests.store.making import ENCODER, Made, Text, make_store, random_examples

DIRECTIONS = ("element_to_target", "target_to_element", "max_of_both")


def link(source: tuple[int, int], target: tuple[int, int], relation: str = "Agent", core: bool | None = True) -> Any:
    spans = {"source_start_word": source[0], "source_end_word": source[1]}
    return spans | {"target_start_word": target[0], "target_end_word": target[1], "relation": relation, "core": core}


def linked(made: Made, *links: Any) -> Made:
    return replace(made, links=links)


def values(found: Result) -> list[float | None]:
    assert [row["direction"] for row in found] == list(DIRECTIONS)
    return [row["value"] for row in found]


def test_the_larger_weight_of_a_link_and_the_mean_over_sentences(tmp_path: Path) -> None:
    # Words 0 1 2: rows (.1 .1 .25) (.3 .35 .2) (.6 .2 .1). The other sentence has the same map.
    words = sentence(list("abc"))
    made = [
        linked(one(words, SYNTAX), link((0, 1), (2, 3)), link((1, 2), (2, 3), "Theme", None)),
        linked(one(words, SYNTAX, "y"), link((1, 3), (0, 1), "Place", False)),
        one(words, SYNTAX, "z"),
    ]
    with open_store(make_store(tmp_path / "f.attn", made, kinds=ONE, precision="exact")) as store:
        # First sentence: .25 and .2 to the target, .6 and .2 from it. The second has no core element.
        found = store.ask("frames/heads")
        assert values(found) == pytest.approx([0.25, 0.6, 0.6])
        assert {(row["n"], row["percentile"]) for row in found} == {(1, 0)}
        # The second: .3 and .6 to its target, .1 and .25 from it.
        every = store.ask("frames/heads", core=False)
        assert values(every) == pytest.approx([(0.25 + 0.6) / 2, (0.6 + 0.25) / 2, 0.6])
        assert {row["n"] for row in every} == {2}
        by_link = store.ask("frames/heads", core=False, unit="link")
        assert values(by_link) == pytest.approx([(0.25 + 0.2 + 0.6) / 3, (0.6 + 0.2 + 0.25) / 3, (0.6 + 0.2 + 0.6) / 3])
        assert {row["n"] for row in by_link} == {3}
        # A corpus that does not tell core elements from others has none that are not.
        assert values(store.ask("frames/heads", relation="Theme")) == pytest.approx([0.2, 0.2, 0.2])
        assert len(store.ask("frames/heads", relation="Place")) == 0
        # The neighbours of the first sentence go; word 0 and word 2 are 2 apart.
        assert values(store.ask("frames/heads", min_distance=2)) == pytest.approx([0.25, 0.6, 0.6])
        assert len(store.ask("frames/heads", min_distance=3)) == 0
        assert len(store.ask("frames/heads", where="false")) == 0


def test_spans_that_share_a_word_have_no_distance(tmp_path: Path) -> None:
    made = [linked(one(sentence(list("abc")), SYNTAX), link((0, 2), (1, 3)))]
    with open_store(make_store(tmp_path / "f.attn", made, kinds=ONE, precision="exact")) as store:
        # Sources 0 1, targets 1 2: .1 .25 .35 .2; back .3 .35 .6 .2.
        assert values(store.ask("frames/heads")) == pytest.approx([0.35, 0.6, 0.6])
        assert len(store.ask("frames/heads", min_distance=1)) == 0


def test_words_may_be_merged_or_their_pieces_taken_as_they_are(tmp_path: Path) -> None:
    # [CLS] a ##a b [SEP]; word 0 is two pieces.
    weights = [
        [0.2, 0.2, 0.2, 0.2, 0.2],
        [0.1, 0.1, 0.2, 0.4, 0.2],
        [0.2, 0.1, 0.1, 0.2, 0.4],
        [0.1, 0.3, 0.5, 0.1, 0.0],
        [0.2, 0.2, 0.2, 0.2, 0.2],
    ]
    text = Text(["[CLS]", "a", "##a", "b", "[SEP]"], ["cls", None, None, None, "sep"], [-1, 0, 0, 1, -1],
                [{"form": "aa", "n_tokens": 2}, {"form": "b"}])  # fmt: skip
    made = [linked(one(text, weights), link((0, 1), (1, 2)))]
    with open_store(make_store(tmp_path / "f.attn", made, kinds=ONE, precision="exact")) as store:
        assert values(store.ask("frames/heads")) == pytest.approx([0.3, 0.8, 0.8])
        assert values(store.ask("frames/heads", pieces="first")) == pytest.approx([0.4, 0.8, 0.8])
        assert values(store.ask("frames/heads", level="token")) == pytest.approx([0.4, 0.5, 0.5])
        # Only the first piece with the only piece of b: .4 there, .3 back.
        assert values(store.ask("frames/heads", level="token", pairs="zip")) == pytest.approx([0.4, 0.3, 0.4])


def test_the_released_code_takes_the_first_element_at_the_first_copy_of_a_spelling(tmp_path: Path) -> None:
    # Five words a b a c d: the element is the second a, looked up as the first; the other element comes later.
    rng = np.random.default_rng(0)
    weights = rng.dirichlet(np.ones(7), size=7)
    text = sentence(["a", "b", "a", "c", "d"])
    made = [linked(one(text, weights), link((3, 4), (4, 5)), link((2, 3), (4, 5)))]
    with open_store(make_store(tmp_path / "f.attn", made, kinds=ONE, precision="exact")) as store:
        found = store.ask("frames/heads", level="token", pairs="zip")
        # Tokens: [CLS] 0, first a 1, d 5.
        expected = [weights[1, 5], weights[5, 1], max(weights[1, 5], weights[5, 1])]
        assert values(found) == pytest.approx(expected, rel=1e-5)


def _kept(store: Store, **params: object) -> int:
    found = list(store.ask("frames/heads", filter="kovaleva", **params))
    return found[0]["n"] if found else 0


@pytest.mark.parametrize(
    ("n_words", "links", "kept"),
    [
        (12, [link((0, 3), (5, 6))], True),
        (13, [link((0, 3), (5, 6))], False),  # too long
        (12, [link((0, 4), (6, 7))], False),  # an element of four words
        (12, [link((0, 3), (5, 6)), link((8, 12), (5, 6), "Time", False)], False),  # one that is not core is too long
        (12, [link((0, 3), (4, 5))], False),  # two words apart
        (12, [link((0, 3), (5, 6)), link((7, 8), (5, 6))], False),  # another one is two words apart
        (12, [link((0, 3), (5, 6)), link((8, 9), (5, 6), "Time", False)], True),
        (12, [link((8, 9), (5, 6), "Time", False)], False),  # no core element
        (12, [link((8, 9), (5, 6), "Time", None)], True),  # nobody said which are core
        (12, [link((0, 3), (5, 6)), link((0, 3), (8, 9))], False),  # two targets
    ],
)
def test_the_papers_choice_of_sentences(n_words: int, links: Sequence[Any], kept: bool, tmp_path: Path) -> None:
    weights = np.full((n_words + 2, n_words + 2), 1 / (n_words + 2))
    made = [linked(one(sentence([f"w{k}" for k in range(n_words)]), weights), *links)]
    with open_store(make_store(tmp_path / "f.attn", made, kinds=ONE, precision="exact")) as store:
        assert _kept(store) == int(kept)
        assert len(store.ask("frames/heads", core=False)) == 3


@pytest.fixture(scope="module")
def made() -> list[Made]:
    rng = np.random.default_rng(11)
    found = []
    for one_made in random_examples(5, (6, 9, 12, 4, 11, 8), {"encoder": ENCODER}):
        n = len(one_made.source.words)
        links = []
        for relation in ("Agent", "Place", "Time"):
            a, b = rng.integers(0, n - 1, size=2)
            width, core = rng.integers(1, 4), bool(rng.integers(2))
            links.append(link((int(a), int(min(a + width, n))), (int(b), int(b + 1)), relation, core))
        found.append(linked(one_made, *links))
    return found


@pytest.fixture(scope="module")
def store(made: list[Made], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with open_store(make_store(tmp_path_factory.mktemp("f") / "f.attn", made, precision="exact")) as opened:
        yield opened


@pytest.mark.parametrize("unit", ["sentence", "link"])
@pytest.mark.parametrize(("level", "pieces"), [("word", "mean"), ("word", "first"), ("token", "mean")])
@pytest.mark.parametrize(("core", "min_distance"), [(True, 0), (False, 0), (False, 2), (True, 3)])
def test_values_are_those_of_plain_loops(
    store: Store, made: list[Made], unit: str, level: str, pieces: str, core: bool, min_distance: int
) -> None:
    wanted = []
    for example in plain.of_made(made):
        own = [
            plain.link_weights(example, item, level=level, pieces=pieces)
            for item in example.links
            if (item["core"] or not core) and plain.distance(item) >= min_distance
        ]
        pairs = [np.array(pair) for pair in own if pair is not None]
        wanted += pairs if unit == "link" else [np.max(pairs, axis=0)] if pairs else []
    forward, backward = np.array(wanted).transpose(1, 0, 2)
    expected = np.array([forward.mean(axis=0), backward.mean(axis=0), np.maximum(forward, backward).mean(axis=0)])
    found = store.ask("frames/heads", unit=unit, level=level, pieces=pieces, core=core, min_distance=min_distance)
    assert {row["n"] for row in found} == {len(wanted)}
    rows = [row["value"] for row in found]
    assert rows == pytest.approx(expected.T.ravel(), rel=1e-5)
    for number in range(3):
        own_values = expected[number]
        ranks = [row["percentile"] for row in found if row["direction"] == DIRECTIONS[number]]
        assert ranks == pytest.approx([(own_values < value).sum() / 5 for value in own_values])


def test_links_of_words_without_tokens_have_no_value_and_no_rank(tmp_path: Path) -> None:
    (made,) = random_examples(5, (6,), {"encoder": ENCODER})
    # The last word but one has no tokens.
    with open_store(make_store(tmp_path / "f.attn", [linked(made, link((4, 5), (0, 1)))])) as store:
        found = store.ask("frames/heads")
        assert {(row["value"], row["percentile"], row["n"]) for row in found} == {(None, None, 0)}


def test_a_store_without_links_says_how_to_get_them(tmp_path: Path) -> None:
    with (
        open_store(make_store(tmp_path / "n.attn", random_examples(5, (6,), {"encoder": ENCODER}))) as store,
        pytest.raises(NotStored, match="--links"),
    ):
        store.ask("frames/heads")
