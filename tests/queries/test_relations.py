"""Tests of the relations of heads against answers that are worked out in a comment, and against plain NumPy."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from attnstore.store.result import Result
from attnstore.store.store import Store
from attnstore.store.store import open as open_store
from tests.queries.sentences import ONE, SYNTAX, one, pointing, sentence
from tests.store.making import make_store


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
        # w3's row, w1's governor, looks at w1; w1's row, w2's governor, looks at w3; a root has no governor.
        ("head_row", "all"): (1, 3),
        ("head_row", "nsubj:pass"): (1, 1),
        ("head_row", "obj"): (0, 1),
        ("head_row", "root"): (0, 1),
    }
    rootless = scores(syntax.ask("relations/accuracy", words="all_no_punct_no_root"))
    assert rootless["dep_to_head", "all"] == (2, 2)
    assert ("dep_to_head", "root") not in rootless
    assert ("dep_to_head", "nsubj") in scores(syntax.ask("relations/accuracy", deprel_level="base"))
    only = syntax.ask("relations/accuracy", relation="obj")
    assert scores(only) == {
        ("dep_to_head", "obj"): (1, 1),
        ("head_to_dep", "obj"): (0, 1),
        ("head_row", "obj"): (0, 1),
    }
    assert {row["relation"] for row in syntax.ask("relations/accuracy", min_count=2)} == {"all"}


def test_baselines_of_the_syntax_sentence(syntax: Store) -> None:
    found = {(row["relation"], row["offset"]): row["correct"] for row in syntax.ask("relations/baselines")}
    # Governors, from 0, the root before the first word: w1 -> 2, w2 -> 0, w3 -> -1.
    # -3: -1 -1 -1, one right; -2: -1 -1 0; -1: -1 0 1, w2 right; 0: none; +1: 1 2 2; +2: 2 2 2, w1 right.
    assert [found["all", offset] for offset in range(-3, 3)] == [1, 0, 1, 0, 0, 1]
    assert (found["root", -3], found["obj", -1], found["nsubj:pass", 2]) == (1, 1, 1)
    best = {row["relation"]: row["offset"] for row in syntax.ask("relations/baselines", best=True)}
    assert best == {"all": -3, "nsubj:pass": 2, "obj": -1, "root": -3}


def test_offsets_reach_as_far_as_one_asks(syntax: Store) -> None:
    def offsets(**asked: object) -> list[int]:
        return [row["offset"] for row in syntax.ask("relations/baselines", relation="all", **asked)]

    assert offsets() == [-3, -2, -1, 0, 1, 2]  # the paper's
    assert offsets(reach_back=1, reach_ahead=4) == [-1, 0, 1, 2, 3, 4]
    assert offsets(reach_back=-1, reach_ahead=1) == [1]
    (row,) = syntax.ask("relations/best", relation="obj", reach_back=0, reach_ahead=0)
    assert (row["offset"], row["baseline"]) == (0, 0.0)


def test_the_papers_code_loses_relations_without_an_error(syntax: Store) -> None:
    # Right throughout: nsubj:pass in every direction, obj by rows; and by offsets nsubj:pass +2, obj -1, root -3.
    found = scores(syntax.ask("relations/accuracy", compat="clark"))
    assert set(found) == {
        ("dep_to_head", "all"), ("head_to_dep", "all"), ("head_row", "all"),
        ("head_to_dep", "obj"), ("head_row", "obj"),
        ("dep_to_head", "root"), ("head_to_dep", "root"), ("head_row", "root"),
    }  # fmt: skip
    offsets = {(row["relation"], row["offset"]) for row in syntax.ask("relations/baselines", compat="clark")}
    assert not offsets & {("nsubj:pass", 2), ("obj", -1), ("root", -3)}
    assert ("obj", 1) in offsets
    rows = {row["relation"]: row for row in syntax.ask("relations/best", compat="clark")}
    assert set(rows) == {"all", "obj"}
    assert (rows["obj"]["direction"], rows["obj"]["accuracy"], rows["obj"]["offset"]) == ("head_to_dep", 0.0, -3)


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
        "asked_word": 1,
        "gold_word": 0,
        "predicted_word": 2,
        "first_word": 0,
    }
    # The other way round: w1, w2's governor, is asked; right would be w2, and its row looks at w3.
    (row,) = syntax.ask("relations/evidence", relation="obj", layer=0, head=0, direction="head_row")
    words = ("word", "asked_word", "gold_word", "predicted_word", "gold", "predicted", "correct")
    assert [row[name] for name in words] == [1, 0, 1, 2, "w2", "w3", False]
    asked = {"relation": "obj", "layer": 0, "head": 0}
    assert len(syntax.ask("relations/evidence", **asked, correct=True)) == 1
    assert len(syntax.ask("relations/evidence", **asked, correct=False)) == 0
    (row,) = syntax.ask("relations/evidence", relation="root", layer=0, head=0)
    assert (row["gold"], row["correct"]) == (None, False)
    assert len(syntax.ask("relations/evidence", relation="nsubj", layer=0, head=0)) == 0
    assert len(syntax.ask("relations/evidence", relation="nsubj", deprel_level="base", layer=0, head=0)) == 1


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
    made = [one(text, pointing([0, 2, 3, 1, 4]))]
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
        asked = {"relation": "nmod:poss", "layer": 0, "head": 0}
        (row,) = store.ask("relations/evidence", possessive=True, **asked)
        assert (row["word"], row["asked_word"], row["predicted_word"], row["correct"]) == (0, 1, 2, True)
        # tail looks at s, the clitic: from the governor's row, that is what the rule asks for.
        assert scores(store.ask("relations/accuracy", possessive=True))["head_row", "nmod:poss"] == (0, 1)
        # The clitic's own relation is scored as ever.
        assert scores(store.ask("relations/accuracy", possessive=True))["dep_to_head", "case"] == (0, 1)


def test_a_quotation_mark_after_a_possessor_is_no_clitic_and_a_last_word_has_none(tmp_path: Path) -> None:
    parse = [(2, "nmod:poss"), (2, "punct"), (None, "root"), (2, "nmod:poss")]
    text = sentence(["my", "'", "friend", "her"], parse, upos=["PRON", "PUNCT", "NOUN", "PRON"])
    # my looks at friend, the mark at her, her at friend.
    made = [one(text, pointing([0, 3, 4, 0, 3, 5]))]
    with open_store(make_store(tmp_path / "q.attn", made, kinds=ONE, precision="exact")) as store:
        for rule in (False, True):
            found = scores(store.ask("relations/accuracy", possessive=rule))
            assert found["dep_to_head", "nmod:poss"] == (2, 2)


def test_words_without_tokens_or_relation_are_not_counted(tmp_path: Path) -> None:
    parse: list[tuple[int | None, str]] = [(1, "det"), (None, "root"), (1, "det"), (1, "det")]
    text = sentence(["a", "b", "c", "d"], parse, aligned=["exact", "exact", "none", "shared"])
    text.words[0]["deprel"] = None  # type: ignore[index]
    made = [one(text, pointing([0, 2, 1, 2, 2, 5]))]
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
    with open_store(make_store(tmp_path / "s.attn", [one(text, pointing([0, 2, 1, 4, 3, 5]))], kinds=ONE)) as store:
        found = {(row["relation"], row["offset"]): row["correct"] for row in store.ask("relations/baselines")}
        assert found["det", 1] == found["det", 2] == 2  # cut at the end of their own sentence
        assert found["root", -2] == found["root", -3] == 2  # d - 2 is before c: the root
        assert found["root", -1] == 0
        rows = store.ask("relations/evidence", relation="det", layer=0, head=0).to_arrow().to_pylist()
        # Words are numbered over the example; first_word is where each sentence begins.
        assert [(row["sentence"], row["first_word"], row["word"]) for row in rows] == [("a b", 0, 0), ("c d", 2, 2)]
        assert len(store.ask("relations/evidence", relation="det", layer=0, head=0, limit=1)) == 1


def test_a_clitic_that_begins_the_next_sentence_belongs_to_nobody_before_it(tmp_path: Path) -> None:
    text = sentence(["tail", "dog", "'s"], [(None, "root"), (0, "nmod:poss"), (None, "root")], sentence=[0, 0, 1])
    with open_store(make_store(tmp_path / "n.attn", [one(text, pointing([0, 2, 1, 1, 4]))], kinds=ONE)) as store:
        for rule in (False, True):
            found = scores(store.ask("relations/accuracy", possessive=rule))
            assert found["dep_to_head", "nmod:poss"] == (1, 1)
