"""Tests of the questions about pairs of words, and of the view that names the pairs."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnstore.errors import BadInput, NotStored
from attnstore.store.store import Store
from attnstore.store.store import open as open_store
from tests.queries import plain
from tests.queries.sentences import ONE, SYNTAX, one, sentence
from tests.store.making import ENCODER, KINDS, Made, make_store, random_examples

PROPERTIES = ("governor", "subject_verb", "noun_pronoun", "same_tag", "same_entity", "same_form", "links")


def asked(store: Store, question: str, **params: Any) -> list[dict[str, Any]]:
    return list(store.ask(f"pairs/{question}", **params))


def pairs_of(store: Store, named: str) -> set[tuple[int, int]]:
    text = "select source_word, target_word from word_pairs where property = $named"
    rows = [(row["source_word"], row["target_word"]) for row in store.sql(text, named=named)]
    assert len(rows) == len(set(rows))
    return set(rows)


def test_the_pairs_of_every_property(tmp_path: Path) -> None:
    # 0 She 1 saw 2 the 3 stone 4 , 5 the 6 stone 7 , 8 It 9 was 10 seen; the second sentence starts at 8.
    forms = ["She", "saw", "the", "stone", ",", "The", "stone", ",", "It", "was", "seen"]
    text = sentence(
        forms,
        [
            (1, "nsubj"), (None, "root"), (3, "det"), (1, "obj"), (6, "punct"), (6, "det"), (3, "appos"), (1, "punct"),
            (10, "nsubj:pass"), (10, "aux:pass"), (None, "root"),
        ],
        xpos=["PRP", "VBD", "DT", "NN", ",", "DT", "NN", ",", "PRP", "VBD", "VBN"],
        upos=["PRON", "VERB", "DET", "NOUN", "PUNCT", "DET", "NOUN", "PUNCT", "PRON", "AUX", "VERB"],
        sentence=[0] * 8 + [1] * 3,
    )  # fmt: skip
    mentions = [{"cluster": cluster, "start_word": word, "end_word": word + 1, "head_word": word}
                for cluster, word in (("stone", 3), ("stone", 6), ("stone", 8), ("she", 0))]  # fmt: skip
    link = {"relation": "r", "source_start_word": 2, "source_end_word": 4, "target_start_word": 3, "target_end_word": 5}
    made = replace(one(text, np.full((13, 13), 1 / 13)), mentions=mentions, links=[link, link])
    with open_store(make_store(tmp_path / "p.attn", [made], kinds=ONE)) as store:
        governed = {(0, 1), (2, 3), (3, 1), (4, 6), (5, 6), (6, 3), (7, 1), (8, 10), (9, 10)}
        assert pairs_of(store, "governor") == governed
        assert pairs_of(store, "subject_verb") == {(0, 1)}
        assert pairs_of(store, "noun_pronoun") == {(3, 0), (6, 0)}
        assert pairs_of(store, "same_entity") == {(a, b) for a in (3, 6, 8) for b in (3, 6, 8) if a != b}
        assert pairs_of(store, "same_form") == {(2, 5), (5, 2), (3, 6), (6, 3)}
        assert pairs_of(store, "links") == {(2, 3), (2, 4), (3, 4)}
        tags = [{0, 8}, {1, 10}, {2, 5}, {3, 6}, {4, 7}]
        assert pairs_of(store, "same_tag") == {(a, b) for own in tags for a in own for b in own if a != b}


# Words 0 1 2: rows (.1 .1 .25) (.3 .35 .2) (.6 .2 .1).
PARSED = sentence(
    ["it", "stands", "there"], [(1, "nsubj"), (None, "root"), (1, "advmod")], xpos=["PRP", "VBZ", "RB"]
)  # fmt: skip


@pytest.fixture(scope="module")
def syntax(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    made = [
        one(PARSED, SYNTAX),
        one(PARSED, SYNTAX.T[[0, 1, 2, 3, 4]], "turned"),
        one(sentence(["a"]), np.eye(3), "bare"),
    ]
    with open_store(make_store(tmp_path_factory.mktemp("s") / "s.attn", made, kinds=ONE, precision="exact")) as opened:
        yield opened


def test_alignment_of_the_worked_example(syntax: Store) -> None:
    # Arcs 0-1 and 2-1: .1 and .2 of 1.65 between different words; over .15: .25 .3 .2 .6 .2, of which 2-1 is an arc.
    (row,) = asked(syntax, "alignment", above=0.15, where="example = 0")
    assert row["share"] == pytest.approx(0.3 / 1.65)
    assert (row["edge_share"], row["n"], row["background"]) == (pytest.approx(1 / 5), 5, pytest.approx(2 / 6))
    # Wilson: ends are the shares whose distance from 1/5 is 1.96 of their own standard errors.
    for end in (row["edge_low"], row["edge_high"]):
        assert abs(end - 0.2) == pytest.approx(1.959964 * np.sqrt(end * (1 - end) / 5))
    assert row["edge_low"] < 0.2 < row["edge_high"]


def test_alignment_without_an_edge_or_without_a_pair_is_null(syntax: Store) -> None:
    (row,) = asked(syntax, "alignment", above=0.9)
    assert row["share"] > 0
    assert (row["edge_share"], row["edge_low"], row["edge_high"], row["n"]) == (None, None, None, 0)
    (row,) = asked(syntax, "alignment", property="same_form", above=0.15, where="example = 0")
    assert [row[name] for name in ("share", "edge_share", "edge_low", "edge_high", "background")] == [None] * 5
    assert row["n"] == 5
    (row,) = asked(syntax, "alignment", where="name = 'bare'")
    assert (row["share"], row["background"], row["n"]) == (None, None, 0)
    assert asked(syntax, "alignment", where="false") == []
    with pytest.raises(BadInput, match="above"):
        asked(syntax, "alignment", above=1)


def test_all_edges_on_pairs_are_certain_on_one_side_only(tmp_path: Path) -> None:
    made = one(sentence(["a", "b"], [(1, "nsubj"), (0, "dep")]), np.full((4, 4), 0.25))
    with open_store(make_store(tmp_path / "a.attn", [made], kinds=ONE, precision="exact")) as store:
        (row,) = asked(store, "alignment", above=0.2)
        assert (row["share"], row["edge_share"], row["edge_high"], row["n"]) == (1, 1, 1, 2)
        assert row["edge_low"] == pytest.approx(2 / (2 + 1.959964**2))


def test_a_subject_and_its_verb(syntax: Store) -> None:
    # .1 and .3; turned, .3 and .1. The example without a parse does not count.
    forward, backward = asked(syntax, "token_to_token")
    assert (forward["direction"], backward["direction"]) == ("source_to_target", "target_to_source")
    assert (forward["value"], backward["value"]) == (pytest.approx(0.2), pytest.approx(0.2))
    alone = asked(syntax, "token_to_token", where="example = 0")
    assert [row["value"] for row in alone] == pytest.approx([0.1, 0.3])
    for row, n in ((forward, 2), (alone[0], 1)):
        assert (row["distance_words"], row["offset"], row["baseline"], row["n"]) == (1, 1, 1, n)
    assert asked(syntax, "token_to_token", where="name = 'bare'") == []
    assert asked(syntax, "token_to_token", where="false") == []
    assert asked(syntax, "token_to_token", property="noun_pronoun") == []


def test_an_example_with_several_pairs_counts_its_largest_or_their_mean(syntax: Store) -> None:
    # Arcs 0-1 and 2-1: .1 and .2 there, .3 and .2 back; offsets +1 and -1 are as common, the smaller comes first.
    where = "example = 0"
    largest = asked(syntax, "token_to_token", property="governor", where=where)
    assert [row["value"] for row in largest] == pytest.approx([0.2, 0.3])
    mean = asked(syntax, "token_to_token", property="governor", aggregate="mean", where=where)
    assert [row["value"] for row in mean] == pytest.approx([0.15, 0.25])
    assert (mean[0]["distance_words"], mean[0]["offset"], mean[0]["baseline"]) == (1, -1, 0.5)


def pair_of_texts(first: Sequence[str], second: Sequence[str], weights: Any, name: str = "x") -> Made:
    text = sentence([*first, *second], part=[0] * len(first) + [1] * len(second))
    made = one(text, weights, name)
    return replace(made, columns={"text": " ".join(first), "second": " ".join(second), "n_parts": 2})


def test_a_word_and_its_copy_in_the_other_text(tmp_path: Path) -> None:
    # A: rain fell; B: Rain stopped again. Word 0 has the copy 2; others of B are 3 and 4, of A word 1.
    rng = np.random.default_rng(0)
    weights = rng.dirichlet(np.ones(7), size=7)
    made = [pair_of_texts(["rain", "fell"], ["Rain", "stopped", "again"], weights)]
    with open_store(make_store(tmp_path / "w.attn", made, kinds=ONE, precision="exact")) as store:
        forward, backward = asked(store, "same_word")
        # Word k is token k + 1.
        assert (forward["direction"], forward["value"]) == ("a_to_b", pytest.approx(weights[1, 3], rel=1e-5))
        assert min(abs(forward["control"] - weights[1, key]) for key in (4, 5)) < 1e-6
        assert (backward["direction"], backward["value"]) == ("b_to_a", pytest.approx(weights[3, 1], rel=1e-5))
        assert backward["control"] == pytest.approx(weights[3, 2], rel=1e-5)
        for row in (forward, backward):
            assert row["difference"] == pytest.approx(row["value"] - row["control"])
            assert row["n"] == 1
        drawn = {asked(store, "same_word", seed=seed)[0]["control"] for seed in range(8)}
        assert len(drawn) == 2
        assert asked(store, "same_word", where="false") == []
        with pytest.raises(BadInput, match="seed"):
            asked(store, "same_word", seed=-1)


def test_same_words_count_by_example_or_by_word(tmp_path: Path) -> None:
    # One matching word in the first pair, two in the second: column j of every row has weight j / 28 or j / 36.
    made = [
        pair_of_texts(["a", "b"], ["a", "c", "d"], np.tile(np.arange(7) / 21, (7, 1))),
        pair_of_texts(["a", "b"], ["b", "a", "c", "d"], np.tile(np.arange(8) / 28, (8, 1)), "y"),
        pair_of_texts(["a"], ["b"], np.full((4, 4), 0.25), "z"),
    ]
    with open_store(make_store(tmp_path / "w.attn", made, kinds=ONE, precision="exact")) as store:
        # First pair: token 3 of 21. Second: a at token 4, b at token 3, of 28.
        macro, micro = (asked(store, "same_word", mode=mode)[0] for mode in ("macro", "micro"))
        assert macro["value"] == pytest.approx((3 / 21 + (4 + 3) / 2 / 28) / 2)
        assert micro["value"] == pytest.approx((3 / 21 + (4 + 3) / 28) / 3)
        assert macro["n"] == micro["n"] == 2


@pytest.fixture(scope="module")
def made() -> list[Made]:
    found = []
    for example in random_examples(13, (6, 9, 4, 11, 7), {"encoder": ENCODER}):
        tags = {"harbour": "PRP", "stone": "VBD"}
        words = [{**word, "xpos": tags.get(word["form"], word["xpos"]), "upos": None} for word in example.source.words]
        found.append(replace(example, source=replace(example.source, words=words)))
    return found


@pytest.fixture(scope="module")
def store(made: list[Made], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with open_store(make_store(tmp_path_factory.mktemp("p") / "p.attn", made, precision="exact")) as opened:
        yield opened


def plain_pairs(one: plain.Plain, named: str) -> list[tuple[int, int]]:
    words, n = one.words, len(one.words)
    tagged = [plain.features_of(word) for word in words]
    every = [(a, b) for a in range(n) for b in range(n) if a != b]
    return {
        "governor": [(a, word["governor"]) for a, word in enumerate(words) if word["governor"] is not None],
        "subject_verb": [
            (a, word["governor"])
            for a, word in enumerate(words)
            if word["deprel"] == "nsubj" and "VERB" in tagged[word["governor"]]
        ],
        "noun_pronoun": [(a, b) for a, b in every if "NOUN" in tagged[a] and "PRON" in tagged[b]],
        "same_tag": [(a, b) for a, b in every if words[a]["xpos"] == words[b]["xpos"]],
        "same_form": [
            (a, b) for a, b in every if words[a]["form"] == words[b]["form"] and words[a]["form"] not in (".", ",")
        ],
    }[named]


@pytest.mark.parametrize("pieces", ["mean", "first"])
@pytest.mark.parametrize("named", ["governor", "subject_verb", "noun_pronoun", "same_tag", "same_form"])
def test_alignment_is_that_of_plain_loops(store: Store, made: list[Made], named: str, pieces: str) -> None:
    mass, total, edges, aligned = np.zeros(6), np.zeros(6), np.zeros(6), np.zeros(6)
    n_property = n_pairs = 0
    for example in plain.of_made(made):
        merged, chosen = example.word_map(pieces), set(plain_pairs(example, named))
        for a in range(len(example.words)):
            for b in range(len(example.words)):
                if a != b and not np.isnan(merged[0, a, b]):
                    hit = (a, b) in chosen
                    mass += merged[:, a, b] * hit
                    total += merged[:, a, b]
                    edges += merged[:, a, b] > 0.2
                    aligned += (merged[:, a, b] > 0.2) & hit
                    n_property, n_pairs = n_property + hit, n_pairs + 1
    found = asked(store, "alignment", property=named, pieces=pieces, above=0.2)
    assert [row["share"] for row in found] == pytest.approx(mass / total, rel=1e-5)
    assert [row["n"] for row in found] == edges.tolist()
    shares = [row["edge_share"] if row["edge_share"] is not None else np.nan for row in found]
    with np.errstate(invalid="ignore"):
        assert shares == pytest.approx(aligned / edges, nan_ok=True)
    assert [row["background"] for row in found] == pytest.approx([n_property / n_pairs] * 6)
    assert n_property > 0


@pytest.mark.parametrize("aggregate", ["max", "mean"])
@pytest.mark.parametrize("named", ["governor", "subject_verb", "noun_pronoun"])
def test_token_to_token_is_that_of_plain_loops(store: Store, made: list[Made], named: str, aggregate: str) -> None:
    values, offsets = [], []
    for example in plain.of_made(made):
        merged = example.word_map()
        chosen = [(a, b) for a, b in plain_pairs(example, named) if not np.isnan(merged[0, a, b])]
        offsets += [b - a for a, b in chosen]
        if chosen:
            sources, targets = zip(*chosen, strict=True)
            both = merged[:, sources, targets], merged[:, targets, sources]
            values.append([side.max(axis=1) if aggregate == "max" else side.mean(axis=1) for side in both])
    expected = np.mean(values, axis=0)
    found = asked(store, "token_to_token", property=named, aggregate=aggregate)
    for number, direction in enumerate(("source_to_target", "target_to_source")):
        own = [row["value"] for row in found if row["direction"] == direction]
        assert own == pytest.approx(expected[number], rel=1e-5)
    counts = {offset: offsets.count(offset) for offset in offsets}
    (stated,) = {(row["offset"], row["baseline"], row["distance_words"], row["n"]) for row in found}
    assert counts[stated[0]] == max(counts.values())
    assert stated[1:] == (
        pytest.approx(max(counts.values()) / len(offsets)),
        pytest.approx(np.abs(offsets).mean()),
        len(values),
    )


def test_every_property_is_answered_for_every_kind(tmp_path: Path) -> None:
    with open_store(make_store(tmp_path / "k.attn", random_examples(3, (5, 7), KINDS), kinds=KINDS)) as store:
        for named in PROPERTIES:
            if named in ("same_entity", "links"):
                with pytest.raises(NotStored, match="annotate STORE"):
                    asked(store, "alignment", property=named, kind="decoder")
                continue
            assert len(asked(store, "alignment", property=named, kind="decoder")) == 6
        assert len(asked(store, "token_to_token", property="governor", kind="decoder")) == 12
        assert asked(store, "token_to_token", property="governor", kind="cross") == []
        assert asked(store, "alignment", kind="cross") == []


def test_a_store_without_what_is_asked_for_says_how_to_get_it(tmp_path: Path) -> None:
    bare = [one(sentence([]), np.full((2, 2), 0.5))]
    with open_store(make_store(tmp_path / "n.attn", bare, kinds=ONE)) as store:
        for question, remedy in (("alignment", "--words"), ("token_to_token", "--words"), ("same_word", "pairs")):
            with pytest.raises(NotStored, match=remedy):
                asked(store, question)
