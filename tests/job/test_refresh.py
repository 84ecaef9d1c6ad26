"""Facts computed anew are kept beside the old ones, serve where they fit, and are dropped once they are out of date."""

import errno
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import attnstore
from attnstore.errors import AttnStoreError, BadInput, NoSpace, NotFound, NotStored
from attnstore.format.commit import published
from attnstore.format.verify import verify
from attnstore.job.annotate import annotate_labels, annotate_words
from attnstore.job.refresh import refresh
from attnstore.job.run import ingest
from attnstore.store.facts import FACTS
from tests.conftest import SENTENCES, arrays_recipe, write_arrays
from tests.job.annotating import NEW, jsonl
from tests.job.stopping import Stop, fail_at


def asked(store: Path, question: str, **params: Any) -> list[dict[str, Any]]:
    with attnstore.open(store) as opened:
        return list(opened.ask(question, **params))


def bare(store: Path, place: Path, question: str, **params: Any) -> list[dict[str, Any]]:
    """What a copy of the store answers whose maps are gone once its files were seen: it comes from its tables."""
    shutil.copytree(store, place, dirs_exist_ok=True)
    with attnstore.open(place) as opened:
        assert opened.units
        for maps in place.glob("segments/*/maps.zarr"):
            shutil.rmtree(maps)
        return list(opened.ask(question, **params))


def near(found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    assert len(found) == len(expected) > 0
    for one, two in zip(found, expected, strict=True):
        assert one == {key: pytest.approx(v, rel=1e-6) if isinstance(v, float) else v for key, v in two.items()}


SERVED: list[tuple[str, dict[str, Any], str, dict[str, Any]]] = [
    ("transfer_facts", {}, "heads/transfer", {}),
    ("transfer_facts", {"top": 2, "above": "0.3"}, "heads/transfer", {"top": 2, "above": 0.3}),
    ("offset_facts", {"reach": 3}, "heads/offsets", {"reach": 3}),
    ("streaming_facts", {"first": 1, "recent": 2}, "heads/streaming", {"first": 1, "recent": 2}),
    ("flow_facts", {}, "heads/flow", {}),
    ("received_facts", {}, "heads/sinks", {}),
    ("tree_facts", {"pieces": "first"}, "relations/trees", {"pieces": "first", "sample": 0}),
    ("tree_facts", {}, "relations/trees", {}),
    ("pair_rows", {}, "probe/features", {}),
    ("head_distances", {"sampled": 0}, "clusters/distances", {}),
    ("head_facts", {"eps": 0.2}, "heads/entropy", {"eps": 0.2}),
    ("word_facts", {"pieces": "max"}, "relations/accuracy", {"pieces": "max"}),
]


@pytest.mark.parametrize(("table", "params", "question", "asked_for"), SERVED)
def test_a_refreshed_table_serves_without_the_maps(
    table: str, params: dict[str, Any], question: str, asked_for: dict[str, Any], exact: Path, tmp_path: Path
) -> None:
    computed = {**asked_for, "sample": 0} if table == "tree_facts" else asked_for
    if table == "head_distances":
        computed = {**asked_for, **params}
    expected = asked(exact, question, **computed)
    addition = refresh(exact, table, params)
    assert published(exact, "additions") == [addition]
    assert verify(exact, deep=True) == []
    near(bare(exact, tmp_path / "bare.attn", question, **asked_for), expected)


def test_other_parameters_are_computed_from_the_maps(exact: Path, tmp_path: Path) -> None:
    expected = asked(exact, "heads/offsets", reach=2)
    refresh(exact, "offset_facts", {"reach": 3})
    near(asked(exact, "heads/offsets", reach=2), expected)
    assert len(bare(exact, tmp_path / "three.attn", "heads/offsets", reach=3)) > 0
    with pytest.raises(AttnStoreError):
        bare(exact, tmp_path / "two.attn", "heads/offsets", reach=2)


def test_the_later_of_two_refreshes_serves(exact: Path, tmp_path: Path) -> None:
    refresh(exact, "offset_facts", {"reach": 3})
    refresh(exact, "offset_facts", {"reach": 1})
    refresh(exact, "transfer_facts")
    with attnstore.open(exact) as store:
        assert store.engine.files.parameters("offset_facts") == {"reach": 1}
        # Every table of the store once, not one from each addition.
        (row,) = store.sql("select count(*) as n from offset_facts")
        assert row["n"] == len(SENTENCES) * 6
    assert len(bare(exact, tmp_path / "bare.attn", "heads/offsets", reach=1)) > 0
    with attnstore.open(exact, snapshot=2) as before:
        assert before.engine.files.parameters("offset_facts") == {"reach": 3}


def test_parameters_that_are_not_given_are_those_that_are_stored(exact: Path) -> None:
    refresh(exact, "head_facts", {"drop": "special"})
    refresh(exact, "head_facts", {"eps": 0.5})
    with attnstore.open(exact) as store:
        assert store.engine.files.parameters("head_facts") == {"drop": "special", "eps": 0.5}


@pytest.mark.parametrize(
    "table", [name for name, fact in FACTS.items() if "example" not in fact.defaults and fact.evidence is None]
)
def test_every_table_of_the_whole_store_can_be_refreshed(table: str, exact: Path) -> None:
    refresh(exact, table)
    assert verify(exact, deep=True) == []
    with attnstore.open(exact) as store:
        assert store.engine.files.parameters(table) is not None
        store.sql(f"select count(*) from stored.{table}")


# --- out of date


def test_new_words_put_the_facts_that_counted_words_out_of_date(exact: Path, tmp_path: Path) -> None:
    for table in ("flow_facts", "pair_rows", "transfer_facts", "received_facts"):
        refresh(exact, table)
    annotate_words(exact, jsonl(tmp_path / "w.jsonl", NEW))
    with attnstore.open(exact) as store:
        known = {name: store.engine.files.parameters(name) for name in FACTS}
    assert known["flow_facts"] is known["pair_rows"] is None
    assert known["transfer_facts"] is not None
    assert known["received_facts"] is not None
    # s3 "rain fell" has two words now as before, s0 four instead of five: its rows are those of the new words.
    counted = {row["example"]: 0 for row in asked(exact, "probe/features")}
    for row in asked(exact, "probe/features"):
        counted[row["example"]] += row["candidate"] == -1
    assert (counted[0], counted[3]) == (4, 2)
    refresh(exact, "pair_rows")
    near(bare(exact, tmp_path / "bare.attn", "probe/features"), asked(exact, "probe/features"))


def test_labels_leave_facts_in_force(exact: Path, tmp_path: Path) -> None:
    refresh(exact, "pair_rows")
    (tmp_path / "l.csv").write_text("name,text,label\ns0,x,a\n")
    annotate_labels(exact, tmp_path / "l.csv")
    assert len(bare(exact, tmp_path / "bare.attn", "probe/features")) > 0


def test_words_given_after_a_refresh_have_facts_of_its_parameters(exact: Path, tmp_path: Path) -> None:
    shutil.copytree(exact, tmp_path / "other.attn")
    refresh(exact, "word_facts", {"pieces": "first"})
    for store in (exact, tmp_path / "other.attn"):
        annotate_words(store, jsonl(tmp_path / "w.jsonl", NEW))
    with attnstore.open(exact) as store:
        assert store.engine.files.parameters("word_facts") == {"pieces": "first"}
    expected = asked(tmp_path / "other.attn", "relations/accuracy", pieces="first")
    near(bare(exact, tmp_path / "bare.attn", "relations/accuracy", pieces="first"), expected)
    near(
        asked(exact, "relations/accuracy", pieces="mean"),
        asked(tmp_path / "other.attn", "relations/accuracy", pieces="mean"),
    )


def test_word_facts_of_a_store_that_kept_none_follow_its_words(tmp_path: Path, arrays_corpus: Path) -> None:
    store = tmp_path / "s.attn"
    ingest(arrays_recipe(arrays_corpus, keep__facts="none", keep__precision="exact"), store).close()
    shutil.copytree(store, tmp_path / "other.attn")
    refresh(store, "word_facts")
    for one in (store, tmp_path / "other.attn"):
        annotate_words(one, jsonl(tmp_path / "w.jsonl", NEW))
    near(asked(store, "relations/accuracy"), asked(tmp_path / "other.attn", "relations/accuracy"))


# --- refusals


@pytest.mark.parametrize(
    ("table", "params", "error", "message"),
    [
        ("offset_fact", {}, NotFound, "one of .*offset_facts"),
        ("tokens", {}, NotFound, "no such facts"),
        ("head_clusters", {}, NotFound, "no such facts"),
        ("offset_facts", {"reech": 3}, BadInput, "no parameter 'reech'; expected one of reach"),
        ("received_facts", {"reach": 3}, BadInput, "expected none"),
        ("offset_facts", {"reach": "far"}, BadInput, "reach='far'; expected an integer"),
        ("offset_facts", {"reach": -1}, BadInput, "reach"),
        ("rollout_facts", {}, BadInput, "about one example"),
        ("tree_facts", {"sample": 3}, BadInput, "no parameter 'sample'"),
        ("flow_facts", {"classes": "colour"}, AttnStoreError, "special, upos, part or kind"),
    ],
)
def test_what_cannot_be_refreshed_is_refused_and_nothing_changes(
    table: str, params: dict[str, Any], error: type[AttnStoreError], message: str, exact: Path
) -> None:
    with pytest.raises(error, match=message):
        refresh(exact, table, params)
    assert published(exact, "additions") == []
    assert not list(exact.glob("additions/.staging-*"))


def test_without_maps_nothing_can_be_refreshed(make_store: Callable[..., Path]) -> None:
    with pytest.raises(NotStored, match="no maps"):
        refresh(make_store(keep__maps="none"), "offset_facts")


def test_facts_of_all_heads_are_not_replaced_by_those_of_some(make_store: Callable[..., Path]) -> None:
    store = make_store(keep__layers=[1])
    with pytest.raises(NotStored, match="some heads only"):
        refresh(store, "head_facts", {"eps": 0.1})
    refresh(store, "offset_facts")
    assert {row["layer"] for row in asked(store, "heads/offsets")} == {1}
    assert {row["layer"] for row in asked(store, "heads/entropy")} == {0, 1}


# --- a run that ends in the middle


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    corpus = write_arrays(tmp_path_factory.mktemp("c"), SENTENCES[3:5], layers=1, heads=2)
    place = tmp_path_factory.mktemp("small") / "s.attn"
    ingest(arrays_recipe(corpus), place).close()
    return place


@pytest.mark.parametrize("kind", ["killed", pytest.param("disk full", marks=pytest.mark.slow)])
def test_a_refresh_stopped_at_any_step_leaves_a_whole_store(kind: str, small: Path, tmp_path: Path) -> None:
    make = {"killed": Stop, "disk full": lambda: OSError(errno.ENOSPC, "no space left on device")}[kind]
    shutil.copytree(small, tmp_path / "counted.attn")
    with pytest.MonkeyPatch.context() as patch:
        seen = fail_at(patch, -1, OSError)
        refresh(tmp_path / "counted.attn", "offset_facts", {"reach": 2})
    assert seen[0] > 8
    expected = asked(tmp_path / "counted.attn", "heads/offsets", reach=2)
    stopped = 0
    for n in range(1, seen[0] + 1):
        store = tmp_path / f"{n}.attn"
        shutil.copytree(small, store)
        with pytest.MonkeyPatch.context() as patch:
            fail_at(patch, n, make)
            try:
                refresh(store, "offset_facts", {"reach": 2})
            except (Stop, NoSpace, OSError):
                stopped += 1
        assert verify(store, deep=True) == []  # what is visible is whole
        assert asked(store, "heads/offsets", reach=2) == expected
        refresh(store, "offset_facts", {"reach": 2})
        assert verify(store, deep=True) == []
        with attnstore.open(store) as opened:
            assert opened.engine.files.parameters("offset_facts") == {"reach": 2}
        assert asked(store, "heads/offsets", reach=2) == expected
        shutil.rmtree(store)
    assert stopped > 6


def test_an_interrupted_reduction_leaves_the_store_as_it_was(exact: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stops(*args: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("attnstore.store.fill.KnownRows.of", stops)
    with pytest.raises(KeyboardInterrupt):
        refresh(exact, "offset_facts")
    monkeypatch.undo()
    assert published(exact, "additions") == []
    assert not list(exact.glob("additions/.staging-*"))
    assert verify(exact, deep=True) == []


def test_refreshed_distances_are_over_all_rows(exact: Path) -> None:
    refresh(exact, "head_distances", {"sampled": 0})
    with attnstore.open(exact) as store:
        rows = list(store.sql("select n_rows, n_tokens from head_distances join examples using (example)"))
    assert len(rows) == len(SENTENCES)
    assert all(row["n_rows"] == row["n_tokens"] for row in rows)
    assert np.ptp([row["n_rows"] for row in rows]) > 0
