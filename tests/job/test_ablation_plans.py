"""Plans of ablations: what several share, orders and searches, resumption, refusals."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import attnstore
from attnstore.errors import BadInput, NotStored
from attnstore.format import names
from attnstore.format.commit import published
from attnstore.job.run import ingest

torch = pytest.importorskip("torch")

from attnstore.job.evidence import part as part_module  # noqa: E402
from tests.capture.conftest import one_thread, tiny  # noqa: E402
from tests.job.ablating import HEADS, classifier, corpus, recipe, rows, short_segments, values  # noqa: E402
from tests.job.task_models import evidence_recipe  # noqa: E402

__all__ = ["classifier", "corpus", "one_thread", "short_segments", "tiny"]  # fixtures


@pytest.mark.slow
def test_a_set_of_several_plans_is_run_once(tmp_path: Path, corpus: Path, classifier: Path) -> None:
    store = tmp_path / "s.attn"
    plans = ["heads", "layers", "pruning", "greedy", "beam"]
    ingest(recipe(corpus, classifier, plans, steps=[1, 4, 8], depth=1, width=2, metric="loss"), store).close()
    assert max(row["n"] for row in rows(store, "select count(*) as n from predictions group by head_set, example")) == 1
    assert max(row["n"] for row in rows(store, "select count(*) as n from head_scores group by head_set, metric")) == 1
    assert {row["plan"] for row in rows(store, "from head_sets where head_set = 'zero 0-0'")} >= {
        "heads",
        "greedy",
        "beam",
    }
    # Another plan later runs what is new alone.
    before = set(published(store, names.ADDITIONS))
    ingest(recipe(corpus, classifier, ["pruning"], order=["0-0", "1-3", "0-1"]), store).close()
    new = set(published(store, names.ADDITIONS)) - before
    assert len(new) == 2  # predictions of sets that no search came by, and the rows of the plan
    assert [row["head_set"] for row in rows(store, "from head_sets where ranking = 'given' order by step")] == [
        "none",
        "zero 0-0",
        "zero 0-0 1-3",
        "zero 0-0 0-1 1-3",
    ]


@pytest.mark.slow
def test_pruning_goes_from_the_head_whose_removal_helps_most_to_the_one_that_harms_most(
    tmp_path: Path, corpus: Path, classifier: Path
) -> None:
    store = tmp_path / "s.attn"
    ingest(recipe(corpus, classifier, ["pruning"], metric="loss", steps=[1, 2, 5]), store).close()
    losses = values(store, "loss")
    order = sorted(HEADS, key=lambda head: losses[f"zero {head[0]}-{head[1]}"])
    with attnstore.open(store) as opened:
        found = opened.ask("ablation/pruning", metric="loss").to_arrow().to_pylist()
    assert [row["k"] for row in found] == [0, 1, 2, 5]
    for row in found:
        own = " ".join(f"{layer}-{head}" for layer, head in sorted(order[: row["k"]]))
        assert row["head_set"] == (f"zero {own}" if own else "none")
        assert (row["value"], row["delta"]) == (losses[row["head_set"]], losses[row["head_set"]] - losses["none"])


@pytest.mark.slow
def test_greedy_and_beam_search_find_what_trying_everything_finds(
    tmp_path: Path, corpus: Path, classifier: Path
) -> None:
    store = tmp_path / "s.attn"
    ingest(recipe(corpus, classifier, ["greedy", "beam"], metric="loss", depth=2, width=8), store).close()
    losses = values(store, "loss")
    first = min(HEADS, key=lambda head: losses[f"zero {head[0]}-{head[1]}"])
    kept = {row["step"]: row["head_set"] for row in rows(store, "from head_sets where plan = 'greedy' and kept")}
    assert kept[0] == "none"
    assert kept[1] == f"zero {first[0]}-{first[1]}"
    pairs = [name for name in losses if len(name.split()) == 3]
    assert len(pairs) == 28  # a beam as wide as there are heads tries every pair
    assert kept[2] == min((name for name in pairs if kept[1].split()[1] in name.split()), key=losses.__getitem__)
    with attnstore.open(store) as opened:
        best = opened.ask("ablation/sets", plan="beam", metric="loss", limit=3).to_arrow().to_pylist()
    ordered = sorted(losses, key=losses.__getitem__)[:3]
    assert [row["head_set"] for row in best] == ordered


PLANS = ["heads", "pruning", "greedy"]


@pytest.mark.usefixtures("short_segments")
def test_an_interrupted_plan_goes_on_after_the_last_part_that_was_published(
    tmp_path: Path, corpus: Path, classifier: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = recipe(corpus, classifier, PLANS, intervention=["mean"], steps=[2], depth=2)
    whole = ingest(asked, tmp_path / "whole.attn")
    parts = len(published(tmp_path / "whole.attn", names.ADDITIONS))
    real, calls = part_module.publish, Counter[str]()

    def every_seventh_fails(*args: Any) -> bool:
        calls["all"] += 1
        if calls["all"] % 7 == 0:
            raise KeyboardInterrupt
        return real(*args)

    stopped = tmp_path / "stopped.attn"
    with monkeypatch.context() as patch:
        patch.setattr(part_module, "publish", every_seventh_fails)
        stops = 0
        while True:
            there = len(published(stopped, names.ADDITIONS))
            try:
                ingest(asked, stopped).close()
                break
            except KeyboardInterrupt:
                stops += 1
                assert len(published(stopped, names.ADDITIONS)) == there + 6
    assert (stops, calls["all"]) == ((parts - 1) // 6, parts + stops)  # nothing was run twice but the parts that failed
    with attnstore.open(stopped) as resumed:
        assert resumed.snapshot.content_hash == whole.snapshot.content_hash
    whole.close()


@pytest.mark.slow
def test_a_killed_process_leaves_its_finished_parts_and_the_next_one_goes_on(
    tmp_path: Path, corpus: Path, classifier: Path
) -> None:
    asked = tmp_path / "recipe.toml"
    asked.write_text(
        f'[corpus]\nkind = "jsonl"\npath = {json.dumps(str(corpus))}\n[model]\nname = {json.dumps(str(classifier))}\n'
        '[keep]\nevidence = ["ablations"]\n[task]\nkind = "classification"\n'
        '[ablations]\nplan = ["heads", "greedy"]\ndepth = 8\nmetric = "loss"\n'
    )
    ingest(asked, tmp_path / "whole.attn").close()
    store, code = tmp_path / "killed.attn", "import sys, attnstore; attnstore.ingest(*sys.argv[1:])"
    kills = 0
    for at_least in (2, 4, 7):
        writer = subprocess.Popen(
            [sys.executable, "-c", code, str(asked), str(store)], env={**os.environ, "OMP_NUM_THREADS": "1"}
        )
        while writer.poll() is None and len(published(store, names.ADDITIONS)) < at_least:
            time.sleep(0.005)
        kills += writer.poll() is None
        writer.send_signal(signal.SIGKILL)
        writer.wait()
    assert kills >= 2
    before = published(store, names.ADDITIONS)
    with ingest(asked, store) as resumed, attnstore.open(tmp_path / "whole.attn") as whole:
        assert set(before) < set(published(store, names.ADDITIONS))
        assert resumed.snapshot.content_hash == whole.snapshot.content_hash


@pytest.mark.parametrize(
    ("plan", "keys", "message"),
    [
        (["pruning"], {"order": ["0-4"]}, r"layer 0, head 4; expected one of this model, 0-0 to 1-3"),
        (["pruning"], {"order": ["0-1", "0-1"]}, "the same head again"),
        (["pruning"], {"order": ["first"]}, "layer and head from 0, such as 2-11"),
        (["pruning"], {"steps": [9]}, "at most 8"),
        (["pruning"], {"order": ["importance"]}, "no importance"),
        (["greedy"], {"metric": "f1 fair"}, "one of accuracy, f1, matthews, loss, f1 good, f1 bad"),
        (["heads"], {"task__labels": ["good", "bad", "fair"]}, "3 classes; expected the 2"),
        (["heads"], {"corpus__columns": {"label": "nothing"}}, "no example has a label|nothing"),
        (["heads"], {"corpus__columns": {"label": "text"}}, "one of good, bad"),
    ],
)
def test_a_plan_that_cannot_be_is_refused_before_the_model_is_run(
    tmp_path: Path, corpus: Path, classifier: Path, plan: list[str], keys: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        ingest(recipe(corpus, classifier, plan, **keys), tmp_path / "s.attn")
    assert published(tmp_path / "s.attn", names.ADDITIONS) == []


@pytest.mark.parametrize(("key", "value"), [("depth", 0), ("width", 0), ("steps", [0]), ("plan", []), ("order", [])])
def test_numbers_below_one_and_empty_lists_are_refused(corpus: Path, classifier: Path, key: str, value: Any) -> None:
    with pytest.raises(BadInput, match=f"ablations.{key}"):
        evidence_recipe(corpus, classifier, ("ablations",), "classification", **{f"ablations__{key}": value})


def test_plans_that_are_added_later_stand_beside_each_other_and_none_hides_another(
    tmp_path: Path, corpus: Path, classifier: Path
) -> None:
    store = tmp_path / "s.attn"
    ingest(recipe(corpus, classifier, ["heads"], intervention=["uniform"]), store).close()
    ingest(recipe(corpus, classifier, ["layers"]), store).close()
    for order in (["0-0", "1-1"], ["1-0", "0-1"]):
        ingest(recipe(corpus, classifier, ["pruning"], order=order, steps=[1, 2]), store).close()
    with attnstore.open(store) as opened:
        heads = list(opened.ask("ablation/heads"))
        assert [(row["intervention"], row["layer"], row["head"]) for row in heads] == [
            ("uniform", *one) for one in HEADS
        ]
        assert [row["intervention"] for row in opened.ask("ablation/layers")] == ["zero"] * 2
        curves = [(row["series"], row["k"]) for row in opened.ask("ablation/pruning")]
        assert curves == [(order, k) for order in ("0-0 1-1", "1-0 0-1") for k in (0, 1, 2)]
        with pytest.raises(NotStored, match="no ablations of the plan greedy") as caught:
            opened.ask("ablation/sets")
        assert "ablations.plan" in caught.value.remedy
