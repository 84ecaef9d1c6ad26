"""Tests of the features of the probe, of their export, and of the probe that is trained on them."""

import importlib.util
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pyarrow.parquet as pq
import pytest

from attnstore.store.store import Store
from attnstore.store.store import open as open_store
from tests.queries.sentences import ONE, SYNTAX, one, sentence
from tests.queries.three_kinds import Floats, examples, rows_of, side
from tests.store.making import ENCODER, KINDS, Made, Text, make_store, random_examples

PROBE = Path(__file__).parents[2] / "docs" / "probe.py"


@pytest.fixture(scope="module")
def made() -> list[Made]:
    return examples()


@pytest.fixture(scope="module")
def store(made: list[Made], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    root = make_store(tmp_path_factory.mktemp("n") / "n.attn", made, kinds=KINDS, precision="exact")
    with open_store(root) as opened:
        yield opened


def test_the_features_of_the_syntax_map_by_hand(tmp_path: Path) -> None:
    text = sentence(["w1", "w2", "."], [(2, "nsubj"), (0, "punct"), (None, "root")])
    made = [replace(one(text, SYNTAX), columns={"document": "d"})]
    with open_store(make_store(tmp_path / "s.attn", made, kinds=ONE, precision="exact")) as store:
        found = [tuple(row.values()) for row in store.ask("probe/features")]
    expected = [
        # (dependent, candidate, label, punct), to the dependent (of the root: to [CLS]), back (of the root: to [SEP])
        ((0, -1, False, False), 0.5, 0.05),
        ((0, 1, False, False), 0.3, 0.1),
        ((0, 2, True, False), 0.6, 0.25),
        ((1, -1, False, True), 0.1, 0.05),
        ((1, 0, True, True), 0.1, 0.3),
        ((1, 2, False, True), 0.2, 0.2),
        ((2, -1, True, False), 0.05, 0.05),
        ((2, 0, False, False), 0.25, 0.6),
        ((2, 1, False, False), 0.2, 0.2),
    ]
    assert [row[:7] for row in found] == [(0, "d", 0, *key) for key, _, _ in expected]
    np.testing.assert_allclose([row[7] for row in found], [[to] for _, to, _ in expected], rtol=1e-6)
    np.testing.assert_allclose([row[8] for row in found], [[back] for _, _, back in expected], rtol=1e-6)


def _cells(weights: Floats, text: Text, query: list[int], key: list[int]) -> Floats:
    return np.asarray(weights[:, query][:, :, key].sum(axis=(1, 2)) / len(query))


@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_the_features_are_those_of_plain_numpy(store: Store, made: list[Made], kind: str) -> None:
    expected = {}
    for example, item in enumerate(made):
        text, weights = side(item, kind), rows_of(item, kind)
        tokens = {w: [t for t, own in enumerate(text.word) if own == w] for w in range(len(text.words))}
        cls, sep = ([t for t, name in enumerate(text.special) if name == special] for special in ("cls", "sep"))
        present = [w for w in tokens if tokens[w]]
        for d in present:
            number = text.words[d].get("sentence", 0)
            others = [w for w in present if w != d and text.words[w].get("sentence", 0) == number]
            governor = text.words[d]["governor"]
            for c in [-1, *others]:
                to = _cells(weights, text, tokens[d], cls) if c < 0 else _cells(weights, text, tokens[c], tokens[d])
                back = _cells(weights, text, tokens[d], sep if c < 0 else tokens[c])
                expected[example, d, c] = (governor == (None if c < 0 else c), to, back)
    found = store.ask("probe/features", kind=kind)
    assert [(row["example"], row["dependent"], row["candidate"]) for row in found] == sorted(
        expected, key=lambda key: (key[0], key[1], key[2])
    )
    for row in found:
        label, to, back = expected[row["example"], row["dependent"], row["candidate"]]
        assert row["label"] == label
        np.testing.assert_allclose(row["forward"], to, rtol=1e-5, atol=1e-8)
        np.testing.assert_allclose(row["backward"], back, rtol=1e-5, atol=1e-8)


def test_without_cls_and_sep_the_root_has_no_weights(tmp_path: Path) -> None:
    text = Text(["a", "b"], [None, None], [0, 1], sentence(["a", "b"], [(1, "x"), (None, "root")]).words)
    with open_store(make_store(tmp_path / "n.attn", [one(text, [[0.5, 0.5], [0.25, 0.75]])], kinds=ONE)) as store:
        found = [(row["candidate"], row["forward"], row["backward"]) for row in store.ask("probe/features")]
    assert found == [(-1, [None], [None]), (1, [0.25], [0.5]), (-1, [None], [None]), (0, [0.5], [0.25])]


def test_the_words_of_one_sentence_only_are_candidates(store: Store, made: list[Made]) -> None:
    for row in store.ask("probe/features"):
        words = made[row["example"]].source.words
        assert words[row["dependent"]]["sentence"] == row["sentence"]
        assert row["candidate"] < 0 or words[row["candidate"]]["sentence"] == row["sentence"]


# --- docs/probe.py


@pytest.fixture(scope="module")
def probe() -> ModuleType:
    pytest.importorskip("torch")
    spec = importlib.util.spec_from_file_location("probe", PROBE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def learnable(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Features of nine documents in which head 1 0 looks at the governor, of the root at [CLS]."""
    made = []
    for number, item in enumerate(random_examples(8, (6, 9, 5, 7, 8, 4, 9, 6, 7), {"encoder": ENCODER})):
        maps, text = item.maps["encoder"].copy(), item.source
        for token, word in enumerate(text.word):
            if word < 0:
                continue
            governor = text.words[word]["governor"]
            keys = [0] if governor is None else [t for t, own in enumerate(text.word) if own == governor] or [0]
            maps[1, 0, token] *= 0.1
            maps[1, 0, token, keys] += 0.9 / len(keys)
        made.append(replace(item, maps={"encoder": maps}, columns={"document": f"d{number}"}))
    folder = tmp_path_factory.mktemp("probe")
    with open_store(make_store(folder / "p.attn", made, precision="exact")) as store:
        store_rows = len(store.ask("probe/features"))
        from attnstore.store.exporting import export

        assert export(store, "probe/features", folder / "probe.parquet", at_a_time=2) == store_rows
    return folder / "probe.parquet"


def test_the_probe_reads_every_sentence_whole(
    probe: ModuleType, learnable: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = pq.read_table(learnable).to_pylist()
    for block in (1, 7, 50, 10_000):
        monkeypatch.setattr(probe, "ROWS", block)
        found = list(probe.sentences(str(learnable)))
        assert len(found) == 9
        at = 0
        for own in found:
            n = len(own.word)
            mine, at = rows[at : at + n * n], at + n * n
            assert [row["dependent"] for row in mine] == [int(word) for word in own.word for _ in range(n)]
            flat = own.weights.numpy().reshape(2, n * n, -1)
            for number, row in enumerate(mine):
                np.testing.assert_allclose(flat[0, number], row["forward"], atol=5e-4)
                np.testing.assert_allclose(flat[1, number], row["backward"], atol=5e-4)
            labels = np.array([row["label"] for row in mine]).reshape(n, n)
            assert [int(place) for place in own.governor] == [
                int(line.argmax()) if line.any() else -1 for line in labels
            ]
        assert at == len(rows)


def test_the_baselines_of_the_probe_by_hand(probe: ModuleType, learnable: Path) -> None:
    for own in probe.sentences(str(learnable)):
        words = [int(word) for word in own.word]
        for place, offset in ((probe.neighbour(own, 1), 1), (probe.neighbour(own, -1), -1)):
            for index, candidates in enumerate(own.candidate.tolist()):
                inside = 0 <= index + offset < len(words)
                assert place[index] == (candidates.index(words[index + offset]) if inside else -1)


def test_a_head_that_looks_at_governors_is_found(
    probe: ModuleType, learnable: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    probe.main(str(learnable), 300)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("3 of 9 documents, held out, without punctuation:")
    scores = {line.split("  ", 2)[2]: float(line.split()[0]) for line in lines[1:]}
    # Chance is about 1/6; the head itself cannot tell the root.
    assert scores["the probe"] > 0.7 > 0.5 > scores["the word after"]
    assert scores["the head that is best on the other documents"] > 0.6
    best = probe.of_heads(list(probe.sentences(str(learnable))))
    assert np.unravel_index(best.argmax(), best.shape) == (1, 3)  # backward: from the dependent; layer 1, head 0
