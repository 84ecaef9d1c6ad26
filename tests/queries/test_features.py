"""Tests of the questions about attention to linguistic features."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnstore.errors import NotFound, NotStored
from attnstore.store.store import Store
from attnstore.store.store import open as open_store
from tests.queries import plain
from tests.queries.sentences import ONE, one, sentence
from tests.store.making import ENCODER, KINDS, Made, Text, make_store, random_examples

NAMES = ["NOUN", "VERB", "PRON", "SUBJ", "OBJ", "NEG", "CLS", "SEP"]
BARE = {"lemma": None, "upos": None, "xpos": None, "deprel": None, "governor": None}

# Columns of the map below, means over all five rows: [CLS] .23, he .27, sees .21, not .16, [SEP] .13.
MAP = [
    [0.05, 0.25, 0.30, 0.20, 0.20],
    [0.30, 0.20, 0.20, 0.20, 0.10],
    [0.20, 0.40, 0.15, 0.15, 0.10],
    [0.30, 0.30, 0.20, 0.15, 0.05],
    [0.30, 0.20, 0.20, 0.10, 0.20],
]
FIRST = sentence(["he", "sees", "not"], [(1, "nsubj"), (None, "root"), (1, "advmod")], xpos=["PRP", "VBZ", "RB"])


def second() -> Made:
    """[CLS] the north sees the no ##rth [SEP], with a noun of two pieces that are spelt otherwise before."""
    forms = ["the", "north", "sees", "the", "north"]
    words = [
        {"form": form, "xpos": tag, "deprel": relation, "governor": governor}
        for form, tag, relation, governor in zip(
            forms,
            ["DT", "NNP", "VBZ", "DT", "NN"],
            ["det", "nsubj", "root", "det", "obj"],
            [1, 2, None, 4, 2],
            strict=True,
        )
    ]
    text = Text(
        ["[CLS]", "the", "north", "sees", "the", "no", "##rth", "[SEP]"],
        ["cls", *[None] * 6, "sep"],
        [-1, 0, 1, 2, 3, 4, 4, -1],
        words,
    )
    # Every row alike: the weights are the column means.
    return one(text, np.tile([0.1, 0.05, 0.2, 0.15, 0.05, 0.05, 0.25, 0.15], (8, 1)), "second")


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    made = [one(FIRST, MAP, "first"), second()]
    with open_store(
        make_store(tmp_path_factory.mktemp("two") / "two.attn", made, kinds=ONE, precision="exact")
    ) as opened:
        yield opened


def values(store: Store, question: str, **params: Any) -> dict[str, tuple[float, int]]:
    found = store.ask(f"features/{question}", **params)
    assert [row["feature"] for row in found] == [name for name in NAMES if name in {r["feature"] for r in found}]
    return {row["feature"]: (row["value"], row["n"]) for row in found}


def near(expected: dict[str, tuple[float, int]]) -> dict[str, Any]:
    return {name: (pytest.approx(value, abs=1e-6), n) for name, (value, n) in expected.items()}


def test_the_largest_column_mean_of_a_features_tokens(two: Store) -> None:
    assert values(two, "attention") == near(
        {
            "NOUN": (0.25, 1),  # north .2, no .05, ##rth .25
            "VERB": ((0.21 + 0.15) / 2, 2),
            "PRON": (0.27, 1),
            "SUBJ": ((0.27 + 0.2) / 2, 2),
            "OBJ": (0.25, 1),
            "NEG": (0.16, 1),
            "CLS": ((0.23 + 0.1) / 2, 2),
            "SEP": ((0.13 + 0.15) / 2, 2),
        }
    )


def test_the_mean_weight_of_a_token_stands_beside_it(two: Store) -> None:
    # Five and eight tokens.
    base = {row["feature"]: row["base"] for row in two.ask("features/attention")}
    assert base["CLS"] == pytest.approx((1 / 5 + 1 / 8) / 2)
    assert (base["PRON"], base["NOUN"]) == (pytest.approx(1 / 5), pytest.approx(1 / 8))


def test_the_released_code_counts_spellings_and_examples_without_the_feature(two: Store) -> None:
    assert values(two, "attention", compat="kovaleva") == near(
        {
            "NOUN": (0.25 / 2, 2),
            "VERB": ((0.21 + 0.15) / 2, 2),
            "PRON": (0.27 / 2, 2),
            "SUBJ": ((0.27 + 0.2) / 2, 2),
            "OBJ": (0.25 / 2, 2),
            "NEG": (0.16 / 2, 2),  # `north` holds `nor`, but no token is spelt so
            "CLS": ((0.23 + 0.1) / 2, 2),
            "SEP": ((0.13 + 0.15) / 2, 2),
        }
    )


def test_another_copy_of_a_spelling_counts_for_the_released_code(tmp_path: Path) -> None:
    # The first `saw` is a noun, the second a verb; the first gets more.
    text = sentence(["saw", "saw"], xpos=["NN", "VBD"])
    weights = np.tile([0.1, 0.5, 0.2, 0.2], (4, 1))
    with open_store(make_store(tmp_path / "s.attn", [one(text, weights)], kinds=ONE, precision="exact")) as store:
        assert values(store, "attention")["VERB"] == (pytest.approx(0.2), 1)
        assert values(store, "attention", compat="kovaleva")["VERB"] == (pytest.approx(0.5), 1)


def test_contractions_are_whole_words_or_pieces_around_the_apostrophe(tmp_path: Path) -> None:
    words = [{"form": "he", "xpos": "PRP"}, {"form": "didn't", "xpos": "VBD", "n_tokens": 3}]
    text = Text(["[CLS]", "he", "didn", "'", "t", "t", "[SEP]"], ["cls", *[None] * 5, "sep"], [-1, 0, 1, 1, 1, -1, -1],
                words)  # fmt: skip
    weights = np.tile([0.1, 0.1, 0.1, 0.15, 0.1, 0.35, 0.1], (7, 1))
    with open_store(make_store(tmp_path / "s.attn", [one(text, weights)], kinds=ONE, precision="exact")) as store:
        assert values(store, "attention")["NEG"] == (pytest.approx(0.15), 1)
        assert values(store, "attention", compat="kovaleva")["NEG"] == (pytest.approx(0.35), 1)


@pytest.mark.parametrize("curly", ["don\u2019t", "N\u2019T", "Nothing"])
def test_negations_are_known_in_any_case_and_with_any_apostrophe(curly: str, tmp_path: Path) -> None:
    text = sentence([curly], xpos=["RB"])
    with open_store(
        make_store(tmp_path / "s.attn", [one(text, np.full((3, 3), 1 / 3))], kinds=ONE, precision="exact")
    ) as store:
        assert values(store, "attention")["NEG"] == (pytest.approx(1 / 3), 1)


@pytest.mark.parametrize(
    ("word", "features"),
    [
        ({"xpos": "NNPS"}, {"NOUN"}),
        ({"xpos": "MD", "upos": "AUX"}, set()),
        ({"upos": "AUX"}, {"VERB"}),
        ({"upos": "PROPN"}, {"NOUN"}),
        ({"xpos": "PRP$", "upos": "DET"}, {"PRON"}),
        ({"xpos": "NE", "upos": "PROPN"}, {"NOUN"}),  # another tag set
        ({"xpos": "WP", "upos": "PRON"}, set()),
        ({"upos": "X", "deprel": "nsubj:pass"}, {"SUBJ"}),
        ({"upos": "X", "deprel": "expl"}, {"SUBJ"}),
        ({"upos": "X", "deprel": "expl:pv"}, set()),
        ({"upos": "X", "deprel": "obl:agent"}, {"SUBJ"}),
        ({"upos": "X", "deprel": "obl"}, set()),
        ({"upos": "X", "deprel": "attr"}, {"OBJ"}),
        ({"upos": "X", "deprel": "dative"}, {"OBJ"}),
        ({"upos": "X", "form": "nowhere"}, {"NEG"}),
        ({"upos": "X", "form": "nothingness"}, set()),
        ({"xpos": "NN", "deprel": "nsubj", "form": "nothing"}, {"NOUN", "SUBJ", "NEG"}),
    ],
)
def test_the_features_of_a_word(word: dict[str, str], features: set[str], tmp_path: Path) -> None:
    text = Text(["[CLS]", "x", "[SEP]"], ["cls", None, "sep"], [-1, 0, -1], [{"form": "x", **BARE, **word}])
    with open_store(make_store(tmp_path / "s.attn", [one(text, np.full((3, 3), 1 / 3))], kinds=ONE)) as store:
        assert {row["feature"] for row in store.sql("from word_features")} == features
        assert {row["feature"] for row in store.sql("from token_features")} == features | {"CLS", "SEP"}


def test_what_cls_looks_at(two: Store) -> None:
    assert values(two, "cls_row") == near(
        {
            "NOUN": (0.25, 1),
            "VERB": ((0.3 + 0.15) / 2, 2),
            "PRON": (0.25, 1),
            "SUBJ": ((0.25 + 0.2) / 2, 2),
            "OBJ": (0.25, 1),
            "NEG": (0.2, 1),
            "CLS": ((0.05 + 0.1) / 2, 2),
            "SEP": ((0.2 + 0.15) / 2, 2),
        }
    )
    assert values(two, "cls_row", row="sep")["SUBJ"] == (pytest.approx((0.2 + 0.2) / 2), 2)
    assert values(two, "cls_row", row="sep")["CLS"] == (pytest.approx((0.3 + 0.1) / 2), 2)


def test_the_mean_of_two_separators_is_asked_and_the_larger_is_looked_at(tmp_path: Path) -> None:
    text = Text(["[CLS]", "a", "[SEP]", "[SEP]"], ["cls", None, "sep", "sep"], [-1, 0, -1, -1],
                [{"form": "a", "xpos": "NN"}])  # fmt: skip
    weights = [[0.1, 0.2, 0.3, 0.4], [0.7, 0.1, 0.1, 0.1], [0.2, 0.2, 0.2, 0.4], [0.0, 0.6, 0.4, 0.0]]
    with open_store(make_store(tmp_path / "s.attn", [one(text, weights)], kinds=ONE, precision="exact")) as store:
        assert values(store, "attention")["SEP"] == (pytest.approx(0.25), 1)
        assert values(store, "cls_row")["SEP"] == (pytest.approx(0.4), 1)
        assert values(store, "cls_row", row="sep") == near({"NOUN": (0.4, 1), "CLS": (0.1, 1), "SEP": (0.3, 1)})


@pytest.fixture(scope="module")
def made() -> list[Made]:
    """Random examples in which every feature occurs; some are pairs of texts."""
    rng, found = np.random.default_rng(3), []
    for number, example in enumerate(random_examples(9, (6, 9, 4, 11, 7, 12), {"encoder": ENCODER})):
        words = []
        for word in example.source.words:
            form = str(rng.choice(["not", "north", "stone", "harbour", "it", "don't"]))
            tag = str(rng.choice(["NN", "VBD", "PRP", "IN"]))
            relation = str(rng.choice(["nsubj", "obj", "det", "csubj:pass"]))
            words.append({**word, "form": form, "xpos": tag, "deprel": relation})
        tokens = [
            text if word < 0 or text.startswith("##") else words[word]["form"]
            for text, word in zip(example.source.tokens, example.source.word, strict=True)
        ]
        text = " ".join(word["form"] for word in words)
        columns = {"text": text, "second": "nowhere" if number == 1 else None}
        found.append(replace(example, source=replace(example.source, words=words, tokens=tokens), columns=columns))
    return found


@pytest.fixture(scope="module")
def store(made: list[Made], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with open_store(make_store(tmp_path_factory.mktemp("r") / "r.attn", made, precision="exact")) as opened:
        yield opened


def same(found: Any, expected: dict[str, tuple[np.ndarray, int]], heads: range) -> None:
    rows = list(found)
    assert {row["feature"] for row in rows} == set(expected)
    for row in rows:
        value, n = expected[row["feature"]]
        assert row["value"] == pytest.approx(value[3 * row["layer"] + row["head"]], rel=1e-5, abs=1e-7)
        assert row["n"] == n
    assert sorted({3 * row["layer"] + row["head"] for row in rows}) == list(heads)


@pytest.mark.parametrize("compat", ["strict", "kovaleva"])
def test_attention_to_features_is_that_of_plain_loops(store: Store, made: list[Made], compat: str) -> None:
    tokens = plain.featured if compat == "strict" else plain.featured_as_released
    expected = plain.means(plain.largest_received(one, tokens(one)) for one in plain.of_made(made))
    same(store.ask("features/attention", compat=compat), expected, range(6))
    assert set(expected) == set(NAMES)


@pytest.mark.parametrize(("layer", "heads"), [(None, range(3, 6)), (0, range(3))])
def test_the_cls_row_is_that_of_plain_loops(store: Store, made: list[Made], layer: int | None, heads: range) -> None:
    expected = plain.means(plain.largest_of_cls(one) for one in plain.of_made(made))
    same(store.ask("features/cls_row", layer=layer), expected, heads)


def test_chosen_examples_alone_count(store: Store, made: list[Made]) -> None:
    chosen = plain.of_made(made[2:4])
    for compat, tokens in (("strict", plain.featured), ("kovaleva", plain.featured_as_released)):
        expected = plain.means(plain.largest_received(one, tokens(one)) for one in chosen)
        same(store.ask("features/attention", compat=compat, where="example in (2, 3)"), expected, range(6))
        assert len(store.ask("features/attention", compat=compat, where="false")) == 0
    assert len(store.ask("features/cls_row", where="false")) == 0


def test_each_kind_asks_about_the_words_on_the_side_of_its_keys(tmp_path: Path) -> None:
    made = random_examples(3, (5, 7), KINDS)
    with open_store(make_store(tmp_path / "k.attn", made, kinds=KINDS, precision="exact")) as store:
        for kind in KINDS:
            sides = [one.source if KINDS[kind].keys == "source" else one.target for one in made]
            nouns = [[at for at, word in enumerate(side.word) if word >= 0] for side in sides if side]
            columns = [one.maps[kind].mean(axis=2).reshape(-1, one.maps[kind].shape[3]) for one in made]
            found = [row for row in store.ask("features/attention", kind=kind) if row["feature"] == "NOUN"]
            # All words but the clitic, which is none, are nouns or punctuation tagged NN.
            tagged = [
                [at for at in own if side.words[side.word[at]]["xpos"] == "NN"]
                for own, side in zip(nouns, [side for side in sides if side], strict=True)
            ]
            expected = np.mean([own[:, at].max(axis=1) for own, at in zip(columns, tagged, strict=True) if at], axis=0)
            assert [row["value"] for row in found] == pytest.approx(expected, rel=1e-5)
            assert [row["base"] for row in found] == pytest.approx(
                [np.mean([1 / own.shape[1] for own, at in zip(columns, tagged, strict=True) if at])] * len(found)
            )
        with pytest.raises(NotFound):
            store.ask("features/cls_row", layer=7, kind="encoder")


def test_a_store_without_tags_says_how_to_get_them(tmp_path: Path) -> None:
    made = [one(sentence(["a"]), np.full((3, 3), 1 / 3))]
    with open_store(make_store(tmp_path / "n.attn", made, kinds=ONE)) as store:
        for name in ("attention", "cls_row"):
            with pytest.raises(NotStored, match="--words"):
                store.ask(f"features/{name}")


def test_a_text_without_words_still_has_its_special_tokens(tmp_path: Path) -> None:
    made = [one(sentence([], ()), [[0.4, 0.6], [0.8, 0.2]], "empty"), one(FIRST, MAP)]
    with open_store(make_store(tmp_path / "e.attn", made, kinds=ONE, precision="exact")) as store:
        found = values(store, "attention", where="example = 0")
        assert found == near({"CLS": (0.6, 1), "SEP": (0.4, 1)})
        assert values(store, "cls_row", where="example = 0") == near({"CLS": (0.4, 1), "SEP": (0.6, 1)})
