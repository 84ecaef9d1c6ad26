"""Tests of the shipped questions against answers that are worked out in a comment."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnstore.format.manifest import Kind
from attnstore.store.result import Result
from attnstore.store.store import Store
from attnstore.store.store import open as open_store
from tests.store.making import Made, Text, make_store

ONE = {"encoder": Kind(1, 1, 1, "source", "source", False)}

# The map X of four tokens [CLS] a b [SEP].
X = np.array([[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1], [0.25, 0.25, 0.25, 0.25], [0.7, 0.1, 0.1, 0.1]], np.float32)

# Five tokens [CLS] w1 w2 w3 [SEP].
SYNTAX = np.array(
    [
        [0.2, 0.2, 0.2, 0.2, 0.2],
        [0.5, 0.1, 0.1, 0.25, 0.05],
        [0.1, 0.3, 0.35, 0.2, 0.05],
        [0.05, 0.6, 0.2, 0.1, 0.05],
        [0.1, 0.1, 0.1, 0.1, 0.6],
    ],
    np.float32,
)


def sentence(forms: Sequence[str], parse: Sequence[tuple[int | None, str]] = (), **columns: Sequence[Any]) -> Text:
    """[CLS] forms [SEP], a token a word; `parse` gives governor and relation of each."""
    words = [
        {
            "form": form,
            "governor": parse[index][0] if parse else None,
            "deprel": parse[index][1] if parse else None,
            **{name: values[index] for name, values in columns.items()},
        }
        for index, form in enumerate(forms)
    ]
    special: list[str | None] = ["cls", *[None] * len(forms), "sep"]
    return Text(["[CLS]", *forms, "[SEP]"], special, [-1, *range(len(forms)), -1], words)


def one(text: Text, weights: Any, name: str = "x") -> Made:
    return Made(name, text, {"encoder": np.asarray(weights, np.float32)[None, None]})


@pytest.fixture(scope="module")
def x(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    root = make_store(
        tmp_path_factory.mktemp("x") / "x.attn", [one(sentence(["a", "b"]), X)], kinds=ONE, precision="exact"
    )
    with open_store(root) as opened:
        yield opened


def values(found: Result, key: str) -> dict[str, float]:
    """Column `value` by another column."""
    return {row[key]: row["value"] for row in found}


@pytest.mark.parametrize("mode", ["macro", "micro"])
def test_positions_of_the_map_x(x: Store, mode: str) -> None:
    # self .1 + .3 + .25 + .1 over 4; next .2 + .2 + .25, previous .4 + .25 + .1, over 3 rows or over 4.
    strict = values(x.ask("heads/positions", mode=mode), "metric")
    assert strict == pytest.approx({"self": 0.1875, "next": 0.65 / 3, "previous": 0.25}, abs=1e-7)
    clark = values(x.ask("heads/positions", mode=mode, compat="clark"), "metric")
    assert clark == pytest.approx({"self": 0.1875, "next": 0.1625, "previous": 0.1875}, abs=1e-7)


@pytest.mark.parametrize("mode", ["macro", "micro"])
def test_special_tokens_of_the_map_x(x: Store, mode: str) -> None:
    # cls .1 + .4 + .25 + .7 = 1.45, sep .4 + .1 + .25 + .1 = .85, both over 4; from [SEP] .1, from the others .75.
    expected = {"cls": 0.3625, "sep": 0.2125, "punct": 0.0}
    strict = values(x.ask("heads/special", mode=mode), "metric")
    assert strict == pytest.approx({**expected, "sep_sep": 0.1, "rest_sep": 0.25}, abs=1e-7)
    clark = values(x.ask("heads/special", mode=mode, compat="clark"), "metric")
    assert clark == pytest.approx({**expected, "sep_sep": 0.05, "rest_sep": 0.375}, abs=1e-7)


def test_entropy_of_the_map_x(x: Store) -> None:
    (row,) = x.ask("heads/entropy")
    assert row["entropy_nats"] == pytest.approx(1.2216460, abs=1e-6)
    assert row["uniform_nats"] == pytest.approx(np.log(4))
    assert row["n"] == 1
    exact = -(X.astype(float) * np.log(X.astype(float))).sum(axis=1).mean()
    assert row["entropy_normalised"] == pytest.approx(exact / np.log(4), abs=1e-6)
    (row,) = x.ask("heads/entropy", variant="exact")
    assert row["entropy_nats"] == pytest.approx(exact, abs=1e-6)
    # eps = 1 would be uniform: close to it, the entropy is close to ln 4, and is computed from the maps.
    (row,) = x.ask("heads/entropy", eps=0.99)
    assert row["entropy_nats"] == pytest.approx(np.log(4), abs=1e-3)


def test_entropy_of_the_cls_row_of_x(x: Store) -> None:
    (row,) = x.ask("heads/cls_entropy")
    assert row["entropy_nats"] == pytest.approx(1.2798770, abs=1e-6)
    # Row (.1 .2 .3 .4): 1.2798542 nats exactly, by ln 4.
    assert row["entropy_normalised"] == pytest.approx(1.2798542 / np.log(4), abs=1e-6)
    assert x.ask("heads/cls_entropy", variant="exact").to_grid()[0, 0] == pytest.approx(1.2798542, abs=1e-6)


@pytest.mark.parametrize("mode", ["macro", "micro"])
def test_confidence_of_the_map_x(x: Store, mode: str) -> None:
    assert values(x.ask("heads/confidence", mode=mode), "variant") == pytest.approx(
        {
            "with_sep": 0.4375,  # (.4 + .4 + .25 + .7) / 4
            "drop_keys": 0.4125,  # (.3 + .4 + .25 + .7) / 4
            "drop_keys_and_queries": 0.95 / 3,  # without the last
            "drop_keys_renormalised": 0.5138889,  # (.3/.6 + .4/.9 + .25/.75 + .7/.9) / 4
        },
        abs=1e-6,
    )
    # Without [CLS] as well: row maxima .3 .3 .25 .1; of the queries a and b .3 .25.
    assert values(x.ask("heads/confidence", mode=mode, drop="special"), "variant") == pytest.approx(
        {
            "with_sep": 0.4375,
            "drop_keys": 0.95 / 4,
            "drop_keys_and_queries": 0.275,
            "drop_keys_renormalised": (0.3 / 0.5 + 0.3 / 0.5 + 0.5 + 0.5) / 4,
        },
        abs=1e-6,
    )


def test_distance_of_the_map_x(x: Store) -> None:
    # Mean over rows of sum_j A |i - j|.
    (row,) = x.ask("heads/distance")
    assert row["distance_tokens"] == pytest.approx(1.55, abs=1e-6)


def test_labels_follow_the_thresholds_and_the_later_rule_wins(x: Store) -> None:
    def label(**asked: float) -> tuple[Any, Any]:
        (row,) = x.ask("heads/labels", **asked)
        return row["label"], row["value"]

    # X: next .2167, previous .25, entropy 1.2216 of ln 4 = 1.3863 (0.881), cls .3625, sep .2125, punct 0.
    assert label() == (None, None)
    assert label(next=0.2) == ("next", pytest.approx(0.65 / 3))
    assert label(next=0.2, previous=0.2) == ("previous", pytest.approx(0.25))
    assert label(previous=0.2, broad=1.2) == ("broad", pytest.approx(1.2216460, abs=1e-6))
    assert label(broad=1.23) == (None, None)
    assert label(broad_share=0.88)[0] == "broad"
    assert label(broad_share=0.89)[0] is None
    assert label(broad=1.2, cls=0.36) == ("cls", pytest.approx(0.3625))
    assert label(cls=0.36, sep=0.21) == ("sep", pytest.approx(0.2125))
    assert label(sep=0.21, punct=-1) == ("punct", 0.0)
    (row,) = x.ask("heads/labels", next=0.2, compat="clark")
    assert row["label"] is None  # next is .1625 there


def test_macro_averages_examples_and_micro_their_rows(tmp_path: Path) -> None:
    # Two tokens that look at themselves, and X: self is 1 over 2 rows, and .75 over 4.
    two = one(sentence([]), np.eye(2), "two")
    with open_store(
        make_store(tmp_path / "two.attn", [two, one(sentence(["a", "b"]), X)], kinds=ONE, precision="exact")
    ) as store:
        macro, micro = (values(store.ask("heads/positions", mode=mode), "metric") for mode in ("macro", "micro"))
        assert macro["self"] == pytest.approx((1 + 0.1875) / 2, abs=1e-7)
        assert micro["self"] == pytest.approx((2 + 0.75) / 6, abs=1e-7)
        # next: 0 over 1 row and .65 over 3.
        assert macro["next"] == pytest.approx(0.65 / 3 / 2, abs=1e-7)
        assert micro["next"] == pytest.approx(0.65 / 4, abs=1e-7)
        assert store.ask("heads/entropy").to_numpy()["n"].tolist() == [2]


@pytest.fixture(scope="module")
def syntax(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    # The map predicts as governors of w1 w2 w3 (from 0): by rows 2, 0, 0, by columns 2, 2, 0.
    # w1 depends on w3, w2 on w1, and w3 is the root.
    text = sentence(["w1", "w2", "w3"], [(2, "nsubj:pass"), (0, "obj"), (None, "root")])
    root = make_store(tmp_path_factory.mktemp("s") / "s.attn", [one(text, SYNTAX)], kinds=ONE, precision="exact")
    with open_store(root) as opened:
        yield opened


def scores(found: Result) -> dict[tuple[str, str], tuple[int, int]]:
    """(correct, n) by direction and relation."""
    return {(row["direction"], row["relation"]): (row["correct"], row["n"]) for row in found}


def test_predictions_of_the_syntax_map(syntax: Store) -> None:
    found = syntax.sql("select attends_to, attended_by from word_facts order by word").to_arrow().to_pydict()
    assert found == {"attends_to": [2, 0, 0], "attended_by": [2, 2, 0]}


def test_accuracy_of_the_syntax_map(syntax: Store) -> None:
    found = scores(syntax.ask("relations/accuracy"))
    assert found == {
        ("dep_to_head", "all"): (2, 3),  # the root is always wrong
        ("head_to_dep", "all"): (1, 3),
        ("dep_to_head", "nsubj:pass"): (1, 1),
        ("head_to_dep", "nsubj:pass"): (1, 1),
        ("dep_to_head", "obj"): (1, 1),
        ("head_to_dep", "obj"): (0, 1),
        ("dep_to_head", "root"): (0, 1),
        ("head_to_dep", "root"): (0, 1),
    }
    rootless = scores(syntax.ask("relations/accuracy", words="all_no_punct_no_root"))
    assert rootless["dep_to_head", "all"] == (2, 2)
    assert ("dep_to_head", "root") not in rootless
    assert ("dep_to_head", "nsubj") in scores(syntax.ask("relations/accuracy", deprel_level="base"))
    only = syntax.ask("relations/accuracy", relation="obj")
    assert scores(only) == {("dep_to_head", "obj"): (1, 1), ("head_to_dep", "obj"): (0, 1)}
    assert {row["relation"] for row in syntax.ask("relations/accuracy", min_count=2)} == {"all"}


def test_baselines_of_the_syntax_sentence(syntax: Store) -> None:
    found = {(row["relation"], row["offset"]): row["correct"] for row in syntax.ask("relations/baselines")}
    # Governors, from 0, the root before the first word: w1 -> 2, w2 -> 0, w3 -> -1.
    # -3: -1 -1 -1, one right; -2: -1 -1 0; -1: -1 0 1, w2 right; 0: none; +1: 1 2 2; +2: 2 2 2, w1 right.
    assert [found["all", offset] for offset in range(-3, 3)] == [1, 0, 1, 0, 0, 1]
    assert (found["root", -3], found["obj", -1], found["nsubj:pass", 2]) == (1, 1, 1)
    best = {row["relation"]: row["offset"] for row in syntax.ask("relations/baselines", best=True)}
    assert best == {"all": -3, "nsubj:pass": 2, "obj": -1, "root": -3}


def test_the_best_head_comes_with_its_baseline(syntax: Store) -> None:
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
    }
    assert rows["nsubj:pass"]["direction"] == "dep_to_head"  # a tie


def test_the_evidence_shows_the_sentence_and_both_words(syntax: Store) -> None:
    (row,) = syntax.ask("relations/evidence", relation="obj", layer=0, head=0, direction="head_to_dep")
    assert row == {
        "example": 0,
        "name": "x",
        "sentence": "w1 w2 w3",
        "word": 1,
        "dependent": "w2",
        "gold": "w1",
        "predicted": "w3",  # column w2 is .1 .(35) .2: w3 without the diagonal
        "weight": pytest.approx(0.2, abs=1e-3),
        "correct": False,
    }
    asked = {"relation": "obj", "layer": 0, "head": 0}
    assert len(syntax.ask("relations/evidence", **asked, correct=True)) == 1
    assert len(syntax.ask("relations/evidence", **asked, correct=False)) == 0
    (row,) = syntax.ask("relations/evidence", relation="root", layer=0, head=0)
    assert (row["gold"], row["correct"]) == (None, False)
    assert len(syntax.ask("relations/evidence", relation="nsubj", layer=0, head=0)) == 0
    assert len(syntax.ask("relations/evidence", relation="nsubj", deprel_level="base", layer=0, head=0)) == 1


def _pointing(keys: Sequence[int]) -> Any:
    """A map whose rows look at these keys with 0.9, and at all others alike."""
    n = len(keys)
    weights = np.full((n, n), 0.1 / (n - 1))
    weights[np.arange(n), keys] = 0.9
    return weights


@pytest.mark.parametrize(
    "clitic", [{"xpos": "POS"}, {"form": "'s"}, {"form": "\u2019s"}, {"form": "'", "upos": "PART"}]
)
def test_the_possessive_rule_scores_the_clitic_in_place_of_the_possessor(
    tmp_path: Path, clitic: dict[str, str]
) -> None:
    # dog 's tail: the head lets dog attend to 's, and 's attend to tail, which is dog's governor.
    parse = [(2, "nmod:poss"), (0, "case"), (None, "root")]
    form = clitic.get("form", "s")
    text = sentence(
        ["dog", form, "tail"], parse, xpos=[None, clitic.get("xpos"), None], upos=["NOUN", clitic.get("upos"), "NOUN"]
    )
    made = [one(text, _pointing([0, 2, 3, 1, 4]))]
    with open_store(make_store(tmp_path / "p.attn", made, kinds=ONE, precision="exact")) as store:
        asked = {"relation": "nmod:poss"}
        plain, ruled = (
            scores(store.ask("relations/accuracy", possessive=rule, **asked))["dep_to_head", "nmod:poss"]
            for rule in (False, True)
        )
        assert (plain, ruled) == ((0, 1), (1, 1))
        # The baseline predicts from the clitic's place too: tail is 2 after dog and 1 after the clitic.
        offsets = [
            {row["offset"]: row["correct"] for row in store.ask("relations/baselines", possessive=rule, **asked)}
            for rule in (False, True)
        ]
        assert (offsets[0][1], offsets[0][2], offsets[1][1]) == (0, 1, 1)
        (row,) = store.ask("relations/best", possessive=True, **asked)
        assert (row["accuracy"], row["offset"]) == (1.0, 1)
        # The clitic's own relation is scored as ever.
        assert scores(store.ask("relations/accuracy", possessive=True))["dep_to_head", "case"] == (0, 1)


def test_a_quotation_mark_after_a_possessor_is_no_clitic_and_a_last_word_has_none(tmp_path: Path) -> None:
    parse = [(2, "nmod:poss"), (2, "punct"), (None, "root"), (2, "nmod:poss")]
    text = sentence(["my", "'", "friend", "her"], parse, upos=["PRON", "PUNCT", "NOUN", "PRON"])
    # my looks at friend, the mark at her, her at friend.
    made = [one(text, _pointing([0, 3, 4, 0, 3, 5]))]
    with open_store(make_store(tmp_path / "q.attn", made, kinds=ONE, precision="exact")) as store:
        for rule in (False, True):
            found = scores(store.ask("relations/accuracy", possessive=rule))
            assert found["dep_to_head", "nmod:poss"] == (2, 2)


def test_words_without_tokens_or_relation_are_not_counted(tmp_path: Path) -> None:
    parse: list[tuple[int | None, str]] = [(1, "det"), (None, "root"), (1, "det"), (1, "det")]
    text = sentence(["a", "b", "c", "d"], parse, aligned=["exact", "exact", "none", "shared"])
    text.words[0]["deprel"] = None  # type: ignore[index]
    made = [one(text, _pointing([0, 2, 1, 2, 2, 5]))]
    with open_store(make_store(tmp_path / "w.attn", made, kinds=ONE, precision="exact")) as store:
        found = scores(store.ask("relations/accuracy"))
        assert found["dep_to_head", "det"] == (1, 1)  # d only
        assert found["dep_to_head", "all"] == (1, 2)
        assert {row["relation"]: row["n"] for row in store.ask("relations/baselines", best=True)} == {
            "all": 2,
            "det": 1,
            "root": 1,
        }
        coverage = {(row["item"], row["state"]): row["n"] for row in store.ask("audit/coverage")}
        assert coverage == {
            ("example", "whole"): 1,
            ("word", "exact"): 2,
            ("word", "none"): 1,
            ("word", "shared"): 1,
        }
        assert [(row["form"], row["aligned"]) for row in store.ask("audit/misaligned")] == [
            ("c", "none"),
            ("d", "shared"),
        ]
        assert len(store.ask("audit/misaligned", limit=1)) == 1


def test_a_window_of_sentences_cuts_offsets_at_the_sentence(tmp_path: Path) -> None:
    # Two sentences of two words: b and d are roots, a depends on b, c on d.
    parse = [(1, "det"), (None, "root"), (3, "det"), (None, "root")]
    text = sentence(["a", "b", "c", "d"], parse, sentence=[0, 0, 1, 1])
    with open_store(make_store(tmp_path / "s.attn", [one(text, _pointing([0, 2, 1, 4, 3, 5]))], kinds=ONE)) as store:
        found = {(row["relation"], row["offset"]): row["correct"] for row in store.ask("relations/baselines")}
        assert found["det", 1] == found["det", 2] == 2  # cut at the end of their own sentence
        assert found["root", -2] == found["root", -3] == 2  # d - 2 is before c: the root
        assert found["root", -1] == 0
        (row,) = store.ask("relations/evidence", relation="det", layer=0, head=0, limit=1)
        assert row["sentence"] == "a b"


def test_the_held_out_choice_is_made_on_even_examples_and_scored_on_odd_ones(tmp_path: Path) -> None:
    kinds = {"encoder": Kind(1, 2, 2, "source", "source", False)}
    # Head 0 is right on the even example only, head 1 on both odd ones; so is the offset +1 on the even one.
    right, wrong = _pointing([0, 2, 1, 3, 4]), _pointing([0, 3, 1, 1, 4])
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
        (row,) = store.ask("relations/best", relation="det", held_out=True)
        assert (row["head"], row["accuracy"], row["n"]) == (0, 0.0, 1)
        assert (row["offset"], row["baseline"]) == (1, 0.0)


def test_rounding_and_row_sums_are_measured(tmp_path: Path) -> None:
    made = [one(sentence(["a", "b"]), X)]
    with open_store(make_store(tmp_path / "c.attn", made, kinds=ONE, precision="compact")) as store:
        # Largest weights .4 .4 .25 .7 are stored as (round(255 sqrt(w)) / 255)^2: .39861, .39861, .25195, .69782.
        codes = (np.rint(np.sqrt(X) * 255) / 255) ** 2
        (row,) = store.ask("audit/rounding")
        assert row["largest_difference"] == pytest.approx(np.abs(codes.max(axis=1) - X.max(axis=1)).max(), abs=3e-4)
        assert row["n"] == 4
        (row,) = store.ask("audit/rows")
        assert row["largest_error"] == pytest.approx(np.abs(codes.sum(axis=1) - 1).max(), abs=1e-6)
        assert row["mean_error"] == pytest.approx(np.abs(codes.sum(axis=1) - 1).mean(), abs=1e-6)
        assert len(store.ask("audit/rows", examples=0)) == 0
        assert len(store.ask("audit/rows", examples=1, layer=0, head=0)) == 1


def test_counts_are_those_of_the_tables(x: Store) -> None:
    counts = {row["name"]: row["n"] for row in x.ask("audit/counts")}
    assert counts == {
        **{"examples": 1, "tokens": 4, "words": 2, "mentions": 0, "links": 0, "heads": 1},
        **{"segments": 1, "additions": 0, "skipped": 0},
    }


def test_a_causal_model_has_no_normalised_entropy_of_its_first_token(tmp_path: Path) -> None:
    causal = {"decoder": Kind(1, 1, 1, "source", "source", True)}
    weights = np.array([[1, 0, 0], [0.5, 0.5, 0], [0.25, 0.25, 0.5]], np.float32)
    text = Text(["[CLS]", "a", "b"], ["cls", None, None], [-1, 0, 1], sentence(["a", "b"]).words)
    made = [Made("c", text, {"decoder": weights[None, None]})]
    with open_store(make_store(tmp_path / "c.attn", made, kinds=causal, precision="exact")) as store:
        (row,) = store.ask("heads/entropy", variant="exact")
        # Rows: 0, ln 2, 1.5 ln 2; normalised over the last two: 1 and 1.5 ln 2 / ln 3.
        assert row["entropy_nats"] == pytest.approx(2.5 * np.log(2) / 3, abs=1e-6)
        assert row["entropy_normalised"] == pytest.approx((1 + 1.5 * np.log(2) / np.log(3)) / 2, abs=1e-6)
        assert row["uniform_nats"] == pytest.approx((np.log(2) + np.log(3)) / 3, abs=1e-6)
        (row,) = store.ask("heads/cls_entropy")
        assert (row["entropy_nats"], row["entropy_normalised"]) == (pytest.approx(0, abs=1e-6), None)


def test_an_example_without_sep_counts_only_where_it_can(tmp_path: Path) -> None:
    text = Text(["[CLS]", "a"], ["cls", None], [-1, 0], sentence(["a"]).words)
    with open_store(make_store(tmp_path / "n.attn", [one(text, [[0.5, 0.5], [0.25, 0.75]])], kinds=ONE)) as store:
        found = {row["metric"]: (row["value"], row["n"]) for row in store.ask("heads/special")}
        assert found["cls"] == (pytest.approx(0.375), 1)
        assert found["rest_sep"] == (0.0, 1)
        assert "sep_sep" not in found
        assert "rest_sep" not in {row["metric"] for row in store.ask("heads/special", compat="clark")}
