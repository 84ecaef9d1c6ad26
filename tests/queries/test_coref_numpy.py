"""Tests of the antecedents that heads choose against plain NumPy and Python, on random mentions and maps."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnstore.store.store import Store
from tests.queries.mentions import FIRST, SECOND, mention, opened, with_mentions
from tests.store.making import ENCODER, Made, random_examples

CANDIDATES = ("preceding_mention_heads", "earlier_mention_heads", "mention_heads", "all_words")


def _mentions(rng: np.random.Generator, n_words: int) -> list[dict[str, Any]]:
    """Mentions of three clusters, of one word to three, nested and crossing."""
    found = []
    for start in sorted(rng.integers(0, n_words - 1, 7)):
        end = min(int(start) + int(rng.integers(1, 4)), n_words)
        head = int(rng.integers(start, end))
        kind = str(rng.choice(["pronoun", "proper", "nominal"]))
        found.append(mention(str(rng.integers(3)), int(start), end, head, kind))
    return found


@pytest.fixture(scope="module")
def random_made() -> list[Made]:
    rng = np.random.default_rng(7)
    return [
        with_mentions(example, _mentions(rng, len(example.source.words)))
        for example in random_examples(11, (9, 12, 7, 14, 10), {"encoder": ENCODER})
    ]


@pytest.fixture(scope="module")
def random_store(random_made: list[Made], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with opened(tmp_path_factory.mktemp("r"), random_made, {"encoder": ENCODER}) as store:
        yield store


def _asked(made: Made, candidates: str) -> Iterator[tuple[Mapping[str, Any], set[int], set[int], set[int]]]:
    """Each mention that has an antecedent; the head words of its candidates, those that are right; and all choices."""
    words = made.source.words
    for own in made.mentions:
        start, head = own["start_word"], own["head_word"]
        others = [
            other
            for other in made.mentions
            if other["head_word"] != head
            and {"earlier_mention_heads": other["start_word"] < start, "mention_heads": True}.get(
                candidates, other["end_word"] <= start
            )
        ]
        right = {other["head_word"] for other in others if other["cluster"] == own["cluster"]}
        if right and words[head]["n_tokens"]:
            heads = {other["head_word"] for other in others}
            yield own, heads, right, set(range(len(words))) - {head} if candidates == "all_words" else heads


@pytest.mark.parametrize("candidates", CANDIDATES)
def test_accuracies_are_those_of_plain_numpy(random_store: Store, random_made: list[Made], candidates: str) -> None:
    expected: dict[tuple[int, int, str, str], list[bool]] = {}
    for made in random_made:
        tokens = [np.flatnonzero(made.source.axis.word == word) for word in range(len(made.source.words))]
        for asked, _, right, choices in _asked(made, candidates):
            for layer, head in np.ndindex(2, 3):
                weights = made.maps["encoder"][layer, head].astype(np.float64)

                def cell(source: int, target: int, weights: Any = weights, tokens: Any = tokens) -> float:
                    if not len(tokens[source]) or not len(tokens[target]):
                        return 0.0
                    return float(weights[np.ix_(tokens[source], tokens[target])].sum(axis=1).mean())

                own = asked["head_word"]
                for direction, best in (
                    (FIRST, max(choices, key=lambda word: (cell(own, word), -word))),
                    (SECOND, max(choices, key=lambda word: (cell(word, own), -word))),
                ):
                    for kind in ("all", asked["type"]):
                        is_right = best in right and tokens[best].size > 0
                        expected.setdefault((layer, head, direction, kind), []).append(is_right)
    found = {
        (row["layer"], row["head"], row["direction"], row["type"]): (row["correct"], row["n"])
        for row in random_store.ask("coref/accuracy", candidates=candidates)
    }
    assert found == {key: (sum(hits), len(hits)) for key, hits in expected.items()}
    evidence = random_store.ask("coref/evidence", layer=1, head=2, candidates=candidates, limit=1000)
    assert (sum(row["correct"] for row in evidence), len(evidence)) == found[1, 2, FIRST, "all"]


@pytest.mark.parametrize("candidates", CANDIDATES)
def test_baselines_are_those_of_plain_python(random_store: Store, random_made: list[Made], candidates: str) -> None:
    hits: dict[str, list[float]] = {"nearest": [], "head_match": [], "chance": []}
    for made in random_made:
        forms = [word["form"].lower() for word in made.source.words]
        for asked, heads, right, choices in _asked(made, candidates):
            own = asked["head_word"]
            by_distance = sorted(heads, key=lambda word: (abs(word - own), word))
            same = [word for word in by_distance if forms[word] == forms[own]]
            hits["nearest"].append(by_distance[0] in right)
            hits["head_match"].append(bool(same) and same[0] in right)
            hits["chance"].append(len(right) / len(choices))
    found = {row["baseline"]: row for row in random_store.ask("coref/baselines", candidates=candidates, type="all")}
    for baseline, values in hits.items():
        assert found[baseline]["n"] == len(values) > 5
        assert found[baseline]["accuracy"] == pytest.approx(np.mean(values))


@pytest.mark.parametrize("directions", ["published", "all"])
def test_no_head_does_better_than_the_best(random_store: Store, directions: str) -> None:
    every = [row for row in random_store.ask("coref/accuracy") if directions == "all" or row["direction"] == FIRST]
    baselines = {(row["type"], row["baseline"]): row["accuracy"] for row in random_store.ask("coref/baselines")}
    best = random_store.ask("coref/best", directions=directions)
    assert [row["type"] for row in best] == list(dict.fromkeys(row["type"] for row in every))
    for row in best:
        assert row["accuracy"] == max(other["accuracy"] for other in every if other["type"] == row["type"])
        for baseline in ("nearest", "head_match", "rule_based", "chance"):
            assert row[baseline] == pytest.approx(baselines[row["type"], baseline])


def test_a_head_that_looks_at_antecedents_alone_is_always_right(random_made: list[Made], tmp_path: Path) -> None:
    made, n_hidden = [], 0
    for example in random_made:
        word_of = example.source.axis.word
        weights = np.full_like(example.maps["encoder"], 1e-4)
        for asked, _, right, _ in _asked(example, "preceding_mention_heads"):
            visible = np.flatnonzero(np.isin(word_of, list(right)))
            # An antecedent whose head word has no tokens cannot be found.
            n_hidden += not visible.size
            if visible.size:
                weights[:, :, word_of == asked["head_word"], visible[0]] = 0.9
        made.append(with_mentions(Made(example.name, example.source, {"encoder": weights}), example.mentions))
    with opened(tmp_path, made, {"encoder": ENCODER}) as store:
        rows = [row for row in store.ask("coref/accuracy", type="all") if row["direction"] == FIRST]
        assert len(rows) == 6
        assert {row["n"] - row["correct"] for row in rows} == {n_hidden}
