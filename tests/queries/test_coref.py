"""Tests of the antecedents that heads choose, against answers that are worked out in a comment."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnstore.errors import NotStored
from attnstore.store.store import Store
from tests.queries.mentions import FIRST, SECOND, mention, opened, scores, with_mentions
from tests.queries.sentences import one, pointing, sentence
from tests.store.making import ENCODER, KINDS, Made, random_examples


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    # 0 Ida 1 met 2 Una 3 . 4 She 5 told 6 her 7 that 8 Ida 9 slept; She is Ida, and her Una.
    forms = ["Ida", "met", "Una", ".", "She", "told", "her", "that", "Ida", "slept"]
    tags = {"Ida": "NNP", "Una": "NNP", "She": "PRP", "her": "PRP"}
    text = sentence(forms, xpos=[tags.get(form, "X") for form in forms], sentence=[0] * 4 + [1] * 6)
    weights = np.zeros((12, 12))
    for row, keys in {
        0: {4: 0.3, 8: 0.1},
        2: {4: 0.1, 6: 0.25, 8: 0.2},
        4: {0: 0.1, 2: 0.2, 6: 0.5, 1: 0.2},
        6: {0: 0.1, 2: 0.3, 4: 0.2, 5: 0.4},
        8: {0: 0.35, 2: 0.1, 4: 0.1, 6: 0.2, 9: 0.25},
    }.items():
        for key, weight in keys.items():
            weights[row + 1, key + 1] = weight
    weights[:, 0] = 1 - weights.sum(axis=1)
    mentions = [
        mention("ida", 0, 1, 0, "proper"),
        mention("una", 2, 3, 2, "proper"),
        mention("ida", 4, 5, 4, "pronoun"),
        mention("una", 6, 7, 6, "pronoun"),
        mention("ida", 8, 9, 8, "proper"),
    ]
    made = with_mentions(one(text, weights), mentions, label="told")
    with opened(tmp_path_factory.mktemp("story"), [made]) as store:
        yield store


def test_mentions_choose_among_the_heads_of_those_before_them(story: Store) -> None:
    # She (Ida or Una) looks at Una, wrong; her (Ida, Una or She) at Una, Ida (all four) at Ida. Of Ida and Una, Ida
    # looks more at She; She looks most at her, and Una most at the second Ida.
    assert scores(story.ask("coref/accuracy")) == {
        (FIRST, "all"): (2, 3),
        (FIRST, "pronoun"): (1, 2),
        (FIRST, "proper"): (1, 1),
        (SECOND, "all"): (1, 3),
        (SECOND, "pronoun"): (1, 2),
        (SECOND, "proper"): (0, 1),
    }
    (row, _) = story.ask("coref/accuracy", type="pronoun")
    assert (row["layer"], row["head"], row["accuracy"]) == (0, 0, 0.5)


def test_among_all_words_mentions_choose_later_ones_and_verbs(story: Store) -> None:
    # She looks most at her, and her at told; Ida looks at Ida. Other words look at no mention.
    found = scores(story.ask("coref/accuracy", candidates="all_words"))
    assert (found[FIRST, "all"], found[FIRST, "pronoun"], found[SECOND, "all"]) == ((1, 3), (0, 2), (1, 3))


def test_among_mentions_on_either_side_the_first_of_a_cluster_counts_too(story: Store) -> None:
    # Ida looks at She and Una at her, both right; She at her, wrong; her at Una, and the second Ida at the first.
    found = scores(story.ask("coref/accuracy", candidates="mention_heads"))
    assert (found[FIRST, "all"], found[FIRST, "pronoun"], found[FIRST, "proper"]) == ((4, 5), (1, 2), (3, 3))


def test_baselines_of_the_story(story: Store) -> None:
    # Nearest are Una, She and her: all wrong. Only Ida is named again. For She the closest that agrees is Una, for her
    # it is She. Candidates are 2, 3 and 4, of which 1, 1 and 2 are right.
    found = {row["baseline"]: row for row in story.ask("coref/baselines", type="all")}
    assert list(found) == ["nearest", "head_match", "rule_based", "chance"]
    assert [row["correct"] for row in found.values()] == pytest.approx([0, 1, 1, 1 / 2 + 1 / 3 + 2 / 4])
    assert [row["accuracy"] for row in found.values()] == pytest.approx([0, 1 / 3, 1 / 3, 4 / 9])
    assert {(row["n"], row["n_candidates"]) for row in found.values()} == {(3, 3.0)}
    # Of the nine other words.
    (chance,) = (
        row for row in story.ask("coref/baselines", type="proper", candidates="all_words") if "chance" in row.values()
    )
    assert (chance["n"], chance["correct"], chance["n_candidates"]) == (1, pytest.approx(2 / 9), 9)


def test_the_best_head_stands_beside_its_baselines(story: Store) -> None:
    (row,) = story.ask("coref/best", type="all")
    assert row == {
        "type": "all",
        "n": 3,
        "layer": 0,
        "head": 0,
        "direction": FIRST,
        "accuracy": pytest.approx(2 / 3),
        "nearest": 0.0,
        "head_match": pytest.approx(1 / 3),
        "rule_based": pytest.approx(1 / 3),
        "chance": pytest.approx(4 / 9),
        "head_label": "1-1",
    }
    assert [row["type"] for row in story.ask("coref/best", directions="all")] == ["all", "pronoun", "proper"]


def test_the_evidence_shows_what_was_chosen_and_what_was_right(story: Store) -> None:
    she, her, ida = story.ask("coref/evidence", layer=0, head=0)
    assert [(row["mention"], row["predicted"], row["correct"]) for row in (she, her, ida)] == [
        ("She", "Una", False),
        ("her", "Una", True),
        ("Ida", "Ida", True),
    ]
    assert she["sentence"] == "Ida met Una . She told her that Ida slept"
    assert (she["word"], she["predicted_word"], she["gold_word"], she["first_word"]) == (4, 2, 0, 0)
    assert she["weight"] == pytest.approx(0.2)
    # Both antecedents of the second Ida are right; the closest is She.
    assert (ida["antecedents"], ida["head_word"], ida["gold_word"]) == ("Ida | She", "Ida", 4)
    asked: dict[str, Any] = {"layer": 0, "head": 0, "type": "pronoun"}
    assert [row["mention"] for row in story.ask("coref/evidence", **asked)] == ["She", "her"]
    assert [row["mention"] for row in story.ask("coref/evidence", **asked, correct=True)] == ["her"]
    (only,) = story.ask("coref/evidence", **asked, correct=False, direction=SECOND)
    assert (only["mention"], only["predicted"], only["sentence"]) == ("her", "She", she["sentence"])
    assert len(story.ask("coref/evidence", layer=0, head=0, limit=1)) == 1


def test_a_filter_that_leaves_nothing_gives_no_rows(story: Store) -> None:
    for question in ("coref/accuracy", "coref/baselines", "coref/best"):
        assert len(story.ask(question, where="label = 'told'")) > 0
        assert len(story.ask(question, where="label = 'sung'")) == 0
        assert len(story.ask(question, type="nominal")) == 0


def test_baselines_go_by_text_then_head_word_then_agreement(tmp_path: Path) -> None:
    forms = ["The", "boats", "a", "man", "Ida", "they", "he", "it", "I", "me", "we", "the", "boats", "those", "boats"]
    tags = {"boats": "NNS", "man": "NN", "Ida": "NNP"}
    text = sentence(forms, xpos=[tags.get(form, "X") for form in forms])
    spans = [(0, 2), (2, 4), *((word, word + 1) for word in range(4, 11)), (11, 13), (13, 15)]
    made = with_mentions(one(text, np.eye(17)), [mention("c", start, end, end - 1) for start, end in spans])
    with opened(tmp_path, [made]) as store:
        found = store.sql(
            "select head_word, nearest, head_match, rule_based from antecedents "
            "where candidates = 'preceding_mention_heads' order by head_word"
        )
        assert [tuple(row.values()) for row in found] == [
            (3, 1, None, 1),  # a man is one, and the boats are more: any
            (4, 3, None, 3),
            (5, 4, None, 1),  # they: neither Ida nor the man
            (6, 5, None, 4),  # he: Ida's gender is open
            (7, 6, None, 4),  # it: he is masculine
            (8, 7, None, 7),  # I: nobody else is a first person
            (9, 8, None, 8),
            (10, 9, None, 9),  # we: of the same person, but more
            (12, 10, 1, 1),
            (14, 12, 12, 12),  # those boats: another text, the same head word
        ]


def test_a_mention_that_contains_another_precedes_only_where_that_is_asked_for(tmp_path: Path) -> None:
    # [the man who lost [his] hat]: his row looks at man.
    text = sentence(["the", "man", "who", "lost", "his", "hat"], upos=["DET", "NOUN", "PRON", "VERB", "PRON", "NOUN"])
    mentions = [mention("m", 0, 6, 1), mention("m", 4, 5, 4, "pronoun")]
    made = with_mentions(one(text, pointing([0, 1, 2, 3, 4, 2, 6, 7])), mentions)
    with opened(tmp_path, [made]) as store:
        for candidates in ("preceding_mention_heads", "all_words"):
            assert len(store.ask("coref/accuracy", candidates=candidates)) == 0
        for candidates, n in (("earlier_mention_heads", 1), ("mention_heads", 2)):
            assert scores(store.ask("coref/accuracy", candidates=candidates))[FIRST, "pronoun"] == (1, 1)
            assert {row["n"] for row in store.ask("coref/baselines", candidates=candidates, type="all")} == {n}


def test_two_mentions_with_one_head_word_are_one_candidate(tmp_path: Path) -> None:
    # [the [boat]] sank ; [it] floated: both are headed by boat, and it means the inner one.
    text = sentence(["the", "boat", "sank", ";", "it", "floated"])
    mentions = [mention("a", 0, 2, 1), mention("b", 1, 2, 1), mention("b", 4, 5, 4), mention("c", 5, 6, 5)]
    made = with_mentions(one(text, pointing([0, 1, 2, 3, 4, 2, 6, 7])), mentions)
    with opened(tmp_path, [made]) as store:
        (row,) = store.sql("select * from antecedents where candidates = 'preceding_mention_heads'")
        assert (row["mention"], row["antecedents"], row["n_candidates"]) == (2, [1], 1)
        assert scores(store.ask("coref/accuracy"))[FIRST, "nominal"] == (1, 1)


def test_determiners_are_pronouns_unless_asked_otherwise_and_untagged_mentions_have_no_type(tmp_path: Path) -> None:
    text = sentence(["boats", "both", "they"], upos=["NOUN", "DET", "PRON"])
    mentions = [mention("a", 0, 1, 0), mention("a", 1, 2, 1), mention("a", 2, 3, 2, None)]
    made = with_mentions(one(text, pointing([0, 1, 1, 1, 4])), mentions)
    with opened(tmp_path, [made]) as store:
        for asked, kind in (({}, "pronoun"), ({"determiners": "nominal"}, "nominal")):
            found = scores(store.ask("coref/accuracy", **asked))
            assert {key[1]: n for key, (_, n) in found.items()} == {"all": 2, kind: 1}
            assert [row["type"] for row in store.ask("coref/best", **asked)] == ["all", kind]
            assert {row["type"] for row in store.ask("coref/baselines", **asked)} == {"all", kind}
            assert len(store.ask("coref/evidence", layer=0, head=0, type=kind, **asked)) == 1
            assert len(store.ask("coref/evidence", layer=0, head=0, **asked)) == 2


def test_a_head_is_chosen_on_one_half_of_the_documents_and_scored_on_the_other(tmp_path: Path) -> None:
    # "a b it", where it means a. Of the first document only head 0 of layer 0 finds a, of the second head 1 of layer 1.
    made = []
    for number, right in enumerate(((0, 0), (1, 1))):
        weights = np.tile(pointing([0, 1, 2, 2, 4]), (2, 3, 1, 1))
        weights[right] = pointing([0, 1, 2, 1, 4])
        text = sentence(["a", "b", "it"])
        mentions = [mention("a", 0, 1, 0), mention("b", 1, 2, 1), mention("a", 2, 3, 2)]
        example = Made(f"e{number}", text, {"encoder": weights.astype(np.float32)})
        made.append(with_mentions(example, mentions, document=f"d{number}"))
    with opened(tmp_path, made, {"encoder": ENCODER}) as store:
        found = {}
        for held_out in ("no", "odd", "even"):
            (row,) = store.ask("coref/best", held_out=held_out, type="all")
            found[held_out] = (row["layer"], row["head"], row["n"], row["accuracy"], row["chance"])
        assert found == {"no": (0, 0, 2, 0.5, 0.5), "odd": (0, 0, 1, 0.0, 0.5), "even": (1, 1, 1, 0.0, 0.5)}


def test_only_maps_of_the_source_have_mentions(tmp_path: Path) -> None:
    made = [
        with_mentions(example, [mention("a", 0, 1, 0), mention("a", 2, 3, 2)])
        for example in random_examples(3, (6, 7), KINDS)
    ]
    with opened(tmp_path, made, KINDS) as store:
        assert len(store.ask("coref/accuracy", kind="encoder", type="all")) == 8
        for kind in ("decoder", "cross"):
            assert len(store.ask("coref/accuracy", kind=kind)) == 0
            assert len(store.ask("coref/best", kind=kind)) == 0
            assert len(store.ask("coref/evidence", kind=kind, layer=0, head=0)) == 0


def test_a_store_without_mentions_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path, [one(sentence(["a", "b"]), np.eye(4))]) as store:
        for question in ("coref/accuracy", "coref/baselines", "coref/best"):
            with pytest.raises(NotStored, match="the store has no mentions of entities"):
                store.ask(question)
