"""This file tests questions about what heads move, and those that take norms for weights, against plain loops."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from attnstore.errors import BadInput, NotStored
from attnstore.job.refresh import refresh
from attnstore.store.store import Store
from attnstore.store.store import open as open_store
from tests.golden.make import _examples, golden_store
from tests.queries.plain import Plain, of_made
from tests.store.making import make_store

LAYERS, HEADS = 2, 3


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return golden_store(tmp_path_factory.mktemp("golden"))


@pytest.fixture(scope="module")
def store(root: Path) -> Iterator[Store]:
    with open_store(root) as opened:
        yield opened


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """The same examples without any evidence."""
    made = make_store(tmp_path_factory.mktemp("bare") / "bare.attn", _examples(), precision="exact")
    with open_store(made) as opened:
        yield opened


@pytest.fixture(scope="module")
def examples() -> list[Plain]:
    return of_made(_examples())


@pytest.fixture(scope="module")
def norms(store: Store) -> list[Any]:
    """[head of all layers, key] of each example."""
    rows = store.sql("select example, value_norm from stored.value_norms order by example, token")
    found: dict[int, list[Any]] = {}
    for row in rows:
        found.setdefault(row["example"], []).append(row["value_norm"])
    return [np.array(found[number]).T for number in sorted(found)]


@pytest.fixture(scope="module")
def weighed(examples: list[Plain], norms: list[Any]) -> list[Plain]:
    """The examples with every weight times the length of what its head moves."""
    return [replace(one, maps=one.maps * own[:, None, :], _merged={}) for one, own in zip(examples, norms, strict=True)]


def class_of(token: Mapping[str, Any]) -> str:
    special = token["special"]
    return special if special in ("cls", "sep") else "punct" if token["text"] in (".", ",") else "other"


@pytest.mark.parametrize("mode", ["macro", "micro"])
def test_what_heads_attend_to_and_what_they_move_by_class(
    store: Store, examples: list[Plain], norms: list[Any], mode: str
) -> None:
    expected: dict[tuple[int, str], list[Any]] = {}
    queries = [one.maps.shape[1] for one in examples]
    for one, own in zip(examples, norms, strict=True):
        n = one.maps.shape[1]
        for name in ("cls", "sep", "punct", "other"):
            keys = [at for at, token in enumerate(one.tokens) if class_of(token) == name]
            for head, weights in enumerate(one.maps):
                alpha = sum(weights[i, j] for i in range(n) for j in keys) / n
                anorm = sum(weights[i, j] * own[head, j] for i in range(n) for j in keys) / n
                lengths = [own[head, j] for j in keys]
                expected.setdefault((head, name), []).append((alpha, anorm, lengths, n))
    rows = list(store.ask("norms/attention", mode=mode))
    assert len(rows) == LAYERS * HEADS * 4
    for row in rows:
        cells = expected[row["layer"] * HEADS + row["head"], row["class"]]
        counts = [1 if mode == "macro" else n for *_, n in cells]
        lengths = [own for _, _, own, _ in cells if own]
        fnorm = np.mean([np.mean(own) for own in lengths]) if mode == "macro" else np.mean(np.concatenate(lengths))
        assert row["n"] == len(lengths)
        assert row["fnorm"] == pytest.approx(fnorm, rel=1e-5)
        assert row["alpha"] == pytest.approx(np.average([cell[0] for cell in cells], weights=counts), rel=1e-5)
        assert row["anorm"] == pytest.approx(np.average([cell[1] for cell in cells], weights=counts), rel=1e-5)
    assert sum(queries) == 87
    for head in range(LAYERS * HEADS):
        own_rows = [row for row in rows if row["layer"] * HEADS + row["head"] == head]
        assert sum(row["alpha"] for row in own_rows) == pytest.approx(1, abs=1e-6)
        assert sum(row["share"] for row in own_rows) == pytest.approx(1, abs=1e-6)


def test_mixing_ratios_are_those_of_every_token(store: Store, examples: list[Plain]) -> None:
    facts = list(store.sql("select * from stored.mixing_facts order by example, token"))
    for classes in ("none", "special"):
        expected: dict[tuple[int | None, str, str], list[float]] = {}
        for row in facts:
            token = examples[row["example"]].tokens[row["token"]]
            name = "all" if classes == "none" else class_of(token)
            for layer in range(LAYERS):
                own = {column: row[column][layer] for column in row if isinstance(row[column], list)}
                ratios = {
                    "Attn-W": 1 - own["self_weight"],
                    "AttnRes-W": (1 - own["self_weight"]) / 2,
                    "Attn-N": own["mix_norm"] / (own["mix_norm"] + own["pres_norm"]),
                    "AttnRes-N": own["mix_norm"] / (own["mix_norm"] + own["pres_norm_res"]),
                    "AttnResLn-N": own["mix_norm_ln"] / (own["mix_norm_ln"] + own["pres_norm_ln"]),
                }
                for variant, ratio in ratios.items():
                    for at in (layer, None):
                        expected.setdefault((at, variant, name), []).append(ratio)
        found = list(store.ask("norms/mixing", classes=classes))
        assert len(found) == len(expected)
        for row in found:
            own_ratios = expected[row["layer"], row["variant"], row["class"]]
            assert row["n"] == len(own_ratios)
            assert row["mean"] == pytest.approx(np.mean(own_ratios), rel=1e-5)
            assert row["max"] == pytest.approx(max(own_ratios), rel=1e-5)
            assert row["min"] == pytest.approx(min(own_ratios), rel=1e-5)


def test_identity_is_the_share_of_tokens_nearest_to_their_own_beginning(store: Store) -> None:
    facts = list(store.sql("select * from stored.identity_facts"))
    found = list(store.ask("norms/identity"))
    assert [row["state"] for row in found] == [0, 1, 2]
    assert found[0]["accuracy"] == found[0]["cosine"] == 1
    for row in found:
        state = row["state"]
        assert row["n"] == len(facts)
        assert row["accuracy"] == pytest.approx(np.mean([one["nearest"][state] == one["token"] for one in facts]))
        assert row["cosine"] == pytest.approx(np.mean([one["cosine"][state] for one in facts]), rel=1e-5)


def test_layers_are_lengths_of_the_sum_over_heads(store: Store, examples: list[Plain]) -> None:
    """A map of a layer sums to what the question says, class by class, and is what its Gram matrices give."""
    totals: dict[tuple[int, str, str, str], list[float]] = {}
    for number, one in enumerate(examples):
        grams = list(store.sql("select * from stored.value_grams where example = $n order by layer, token", n=number))
        n = len(one.tokens)
        for variant in ("layer_norm", "residual_norm", "residual_norm_ln"):
            found = store.attention(number, weights=variant)
            assert found.dims == ("layer", "query", "key")
            assert found.heads == ()
            for layer in range(LAYERS):
                for i, j in np.ndindex(n, n):
                    row = grams[layer * n + j]
                    weights = [one.maps[layer * HEADS + head, i, j] for head in range(HEADS)]
                    length = by_hand(row, weights, i == j and variant != "layer_norm", variant.endswith("_ln"))
                    length *= grams[layer * n + i]["scale"] if variant.endswith("_ln") else 1
                    assert found.to_numpy()[layer, i, j] == pytest.approx(length, rel=1e-4, abs=1e-5)
                    pair = (layer, variant, class_of(one.tokens[i]), class_of(one.tokens[j]))
                    totals.setdefault(pair, []).append(length)
    rows = list(store.ask("norms/layers"))
    assert len(rows) == len(totals)
    for row in rows:
        own = totals[row["layer"], row["variant"], row["query_class"], row["key_class"]]
        assert row["n"] == len(own)
        assert row["mean"] == pytest.approx(np.mean(own), rel=1e-4)
        every = sum(
            sum(lengths)
            for (layer, variant, query, _), lengths in totals.items()
            if (layer, variant, query) == (row["layer"], row["variant"], row["query_class"])
        )
        assert row["share"] == pytest.approx(sum(own) / every, rel=1e-4)


def by_hand(row: Mapping[str, Any], weights: list[float], with_stream: bool, normed: bool) -> float:
    """The root of a Gram a, term by term."""
    suffix, square, at = "_ln" if normed else "", 0.0, 0
    for one in range(HEADS):
        for other in range(one, HEADS):
            square += (1 if one == other else 2) * weights[one] * weights[other] * row[f"gram{suffix}"][at]
            at += 1
    if with_stream:
        square += 2 * sum(weights[head] * row[f"stream{suffix}"][head] for head in range(HEADS))
        square += row[f"square{suffix}"]
    return float(np.sqrt(max(square, 0)))


@pytest.mark.parametrize("specials", [False, True])
def test_frequency_is_a_rank_correlation_over_the_different_tokens(store: Store, specials: bool) -> None:
    stats = pytest.importorskip("scipy.stats")
    rows = store.sql("""
        select t.token_id, v.value_norm, t.special from stored.value_norms as v join tokens as t using (example, token)
    """)
    lengths: dict[int, list[list[float]]] = {}
    for row in rows:
        if row["token_id"] is not None and (specials or row["special"] is None):
            lengths.setdefault(row["token_id"], []).append(row["value_norm"])
    found = list(store.ask("norms/frequency", specials=specials))
    assert len(found) == LAYERS * HEADS
    for row in found:
        head = row["layer"] * HEADS + row["head"]
        times = [-len(own) for own in lengths.values()]
        means = [np.mean([one[head] for one in own]) for own in lengths.values()]
        assert row["n"] == len(lengths)
        assert row["correlation"] == pytest.approx(stats.spearmanr(times, means).statistic, abs=1e-6)


def test_a_map_of_norms_is_the_map_times_the_value_norms(store: Store, weighed: list[Plain]) -> None:
    for number, one in enumerate(weighed):
        found = store.attention(number, weights="norm").to_numpy()
        np.testing.assert_allclose(found.reshape(one.maps.shape), one.maps, rtol=1e-5)
    one_head = store.attention(2, layer=1, head=[2, 0], weights="norm")
    np.testing.assert_allclose(one_head.to_numpy(), weighed[2].maps[[5, 3]], rtol=1e-5)
    words = store.attention(3, layer=0, head=1, level="word", specials=False, weights="norm").to_numpy()
    expected = np.nan_to_num(weighed[3].word_map()[1])
    np.testing.assert_allclose(words, expected, rtol=1e-5, atol=1e-7)
    assert "norm" in repr(one_head)


@pytest.mark.parametrize("question", ["heads/special", "heads/positions"])
def test_shares_of_what_is_moved_by_position_and_class(store: Store, weighed: list[Plain], question: str) -> None:
    rows = list(store.ask(question, weights="norm", compat="clark"))
    for row in rows:
        values = []
        for one in weighed:
            shares = one.maps[row["layer"] * HEADS + row["head"]]
            shares = shares / shares.sum(axis=1, keepdims=True)
            n = len(shares)
            offset = {"self": 0, "previous": -1, "next": 1}.get(row["metric"])
            if offset is not None:
                values.append(np.trace(shares, offset) / n)
            elif row["metric"] in ("cls", "sep", "punct"):
                keys = [at for at, token in enumerate(one.tokens) if class_of(token) == row["metric"]]
                values.append(shares[:, keys].sum() / n)
        if values:
            assert row["value"] == pytest.approx(np.mean(values), rel=1e-4, abs=1e-7)


def test_the_word_that_most_is_moved_from_is_what_relations_score(store: Store, weighed: list[Plain]) -> None:
    correct: dict[tuple[int, int], int] = {}
    total = 0
    for one in weighed:
        words = one.word_map()
        for number, word in enumerate(one.words):
            total += word["n_tokens"] > 0  # the others take no part
            for head, own in enumerate(words):
                row = np.nan_to_num(own[number], nan=-1.0)
                row[number] = -1
                hit = row.max() > 0 and int(row.argmax()) == word["governor"]
                correct[divmod(head, HEADS)] = correct.get(divmod(head, HEADS), 0) + int(hit)
    asked: dict[str, Any] = {"relation": "all", "derived": False}
    rows = [
        row for row in store.ask("relations/accuracy", weights="norm", **asked) if row["direction"] == "dep_to_head"
    ]
    assert {(row["layer"], row["head"]): row["correct"] for row in rows} == correct
    assert {row["n"] for row in rows} == {total}
    plain = [row["correct"] for row in store.ask("relations/accuracy", **asked) if row["direction"] == "dep_to_head"]
    assert [row["correct"] for row in rows] != plain
    best = next(row for row in store.ask("relations/best", weights="norm", relation="det"))
    evidence = store.ask(
        "relations/evidence", weights="norm", relation="det", limit=1000,
        **{name: best[name] for name in ("layer", "head", "direction")},
    )  # fmt: skip
    assert sum(row["correct"] for row in evidence) / len(list(evidence)) == pytest.approx(best["accuracy"])


def test_norms_change_which_antecedent_is_chosen(store: Store, weighed: list[Plain]) -> None:
    rows = list(store.ask("coref/evidence", weights="norm", layer=0, head=0, limit=1000))
    assert rows
    facts = store.engine.computed.tables(
        (("mention_facts", (("candidates", "all_words"), ("pieces", "mean"), ("weights", "norm"))),), None, "testing"
    )["mention_facts"].to_pylist()
    mentions = {(row["example"], row["mention"]): row for row in store.sql("select * from stored.mentions")}
    for row in facts:
        head_word = mentions[row["example"], row["mention"]]["head_word"]
        for head, own in enumerate(weighed[row["example"]].word_map()):
            weights = np.nan_to_num(own[head_word], nan=-1.0)
            weights[head_word] = -1
            if row["attends_to"][head] is not None:
                assert row["attends_to"][head] == weights.argmax()
                assert row["attends_to_weight"][head] == pytest.approx(weights.max(), rel=1e-5)


def test_rollout_mixes_as_much_as_was_measured(store: Store, examples: list[Plain]) -> None:
    one, facts = examples[1], store.sql("select * from stored.mixing_facts where example = 1 order by token")
    rows, n = list(facts), len(examples[1].tokens)
    reached = np.eye(n)
    for layer in range(LAYERS):
        mean = one.maps[layer * HEADS : (layer + 1) * HEADS].mean(axis=0)
        kept = np.diag([
            row["pres_norm_ln"][layer] / (row["pres_norm_ln"][layer] + row["mix_norm_ln"][layer]) for row in rows
        ])  # fmt: skip
        reached = ((np.eye(n) - kept) @ mean + kept) @ reached
    found = np.array([row["weight"] for row in store.ask("examples/rollout", example=1, mixing="measured")])
    np.testing.assert_allclose(found.reshape(n, n), reached, rtol=1e-5)


def test_a_store_without_the_evidence_says_how_to_add_it(bare: Store) -> None:
    for name, params in (
        ("norms/attention", {}),
        ("norms/mixing", {}),
        ("norms/identity", {}),
        ("norms/layers", {}),
        ("norms/frequency", {}),
        ("heads/special", {"weights": "norm"}),
        ("relations/best", {"weights": "norm"}),
        ("coref/accuracy", {"weights": "norm"}),
        ("examples/rollout", {"example": 1, "mixing": "measured"}),
    ):
        with pytest.raises(NotStored, match=r"keep\.evidence"):
            bare.ask(name, **params)
    for weights in ("norm", "layer_norm"):
        with pytest.raises(NotStored, match=r"keep\.evidence"):
            bare.attention(0, weights=weights)


def test_questions_of_attention_read_what_is_stored(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object) -> None:
        raise AssertionError("facts that are there were computed again")

    monkeypatch.setattr("attnstore.store.computed.compute", refuse)
    for name in ("heads/special", "heads/positions", "relations/accuracy", "relations/best"):
        assert len(store.ask(name)) > 0


def test_facts_of_norms_are_not_kept_in_the_place_of_those_of_attention(root: Path) -> None:
    with pytest.raises(BadInput, match="no parameter 'weights'"):
        refresh(root, "head_facts", {"weights": "norm"})


def test_a_map_of_all_heads_together_takes_no_head(store: Store) -> None:
    with pytest.raises(BadInput, match="all heads together"):
        store.attention(0, head=1, weights="layer_norm")
    with pytest.raises(BadInput, match="weights='norms'"):
        store.attention(0, weights="norms")  # type: ignore[arg-type]
    one = store.attention(0, layer=1, weights="residual_norm")
    assert one.dims == ("query", "key")
    assert one.to_pandas().shape == one.shape
