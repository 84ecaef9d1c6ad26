"""Tests of facts that are computed anew when a question asks for other parameters than were stored."""

import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from attnstore.errors import BadQuestion, NotStored
from attnstore.format.manifest import Kept, Kind
from attnstore.format.tables import TABLES
from attnstore.reduce.head_facts import head_facts
from attnstore.store import computed
from attnstore.store.fill import compute
from attnstore.store.store import Store
from attnstore.store.store import open as open_store
from tests.store.making import ENCODER, KINDS, Made, make_store, random_examples


@pytest.fixture(scope="module")
def exact(made: list[Made], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store whose maps are not rounded, so that a fact computed again is the same fact."""
    return make_store(tmp_path_factory.mktemp("exact") / "exact.attn", made, precision="exact")


def _without_maps(root: Path, place: Path) -> Store:
    """An opened copy of a store whose maps are gone: whatever it answers comes from its tables."""
    store = open_store(shutil.copytree(root, place))
    assert store.units  # whose files are looked at once
    for maps in store.path.glob("segments/*/maps.zarr"):
        shutil.rmtree(maps)
    return store


@pytest.mark.parametrize("table", ["head_facts", "token_facts", "word_facts"])
@pytest.mark.parametrize("kinds", [{"encoder": ENCODER}, KINDS])
def test_a_table_computed_from_exact_maps_is_the_stored_one(
    table: str, kinds: Mapping[str, Kind], tmp_path: Path
) -> None:
    made = random_examples(4, (6, 4, 9, 5), kinds)
    root = make_store(tmp_path / "two.attn", made, kinds=kinds, precision="exact", per_segment=3)
    with open_store(root) as store:
        params: dict[str, dict[str, object]] = {
            "head_facts": {"eps": 1e-4, "drop": "sep"},
            "token_facts": {},
            "word_facts": {"pieces": "mean"},
        }
        found = compute(store.engine, table, params[table], "testing")
        assert found.schema == TABLES[table]
        keys = ", ".join(found.schema.names[: 4 if table == "head_facts" else 3])
        stored = store.sql(f"from stored.{table} order by {keys}").to_arrow()
        # Blocks of other sizes add up in another order, hence not to the last bit.
        own = store.engine.replacing({table: found}).run(f"from stored.{table} order by {keys}")
        for name in stored.column_names:
            one, two = stored[name].combine_chunks(), own[name].combine_chunks()
            assert one.null_count == two.null_count
            if hasattr(one, "flatten"):
                one, two = one.flatten(), two.flatten()
                assert one.is_null().equals(two.is_null())
            if one.type == "string":
                assert one.equals(two)
            else:
                np.testing.assert_allclose(
                    one.fill_null(-1).to_numpy(False), two.fill_null(-1).to_numpy(False), rtol=1e-5, atol=1e-6
                )


def test_masses_that_were_not_kept_are_computed(exact: Path, made: list[Made], tmp_path: Path) -> None:
    mine = tmp_path / "mine.sql"
    mine.write_text(
        "-- Mine.\n-- reads: token_masses\n"
        "select layer, head, sep_mass from token_masses where example = 3 and token = 2 order by all\n"
    )
    with open_store(exact) as store:
        found = store.ask(str(mine)).to_numpy()["sep_mass"]
        # [SEP] is the last token of the example.
        np.testing.assert_allclose(found, made[3].maps["encoder"][:, :, 2, -1].reshape(-1), atol=1e-3)


def test_parameters_that_fit_are_answered_from_the_stored_table(exact: Path, tmp_path: Path) -> None:
    with _without_maps(exact, tmp_path / "bare.attn") as store:
        assert len(store.ask("heads/entropy")) == 6
        assert len(store.ask("heads/entropy", eps=0.0001)) == 6
        assert len(store.ask("heads/confidence", drop="sep")) == 24
        assert len(store.ask("relations/best", pieces="mean")) > 0


def test_other_parameters_are_computed_from_the_maps(exact: Path, made: list[Made]) -> None:
    with open_store(exact) as store:
        found = store.ask("heads/entropy", eps=0.25).to_grid()
        expected = np.zeros((2, 3))
        for one in made:
            maps = one.maps["encoder"].reshape(6, *one.maps["encoder"].shape[2:])
            facts = head_facts(maps, one.frame(ENCODER), eps=0.25)
            expected += (facts["entropy_sum"] / facts["n_queries"]).reshape(2, 3) / len(made)
        np.testing.assert_allclose(found, expected, rtol=1e-6)
        # The stored facts are as they were.
        assert not np.allclose(store.ask("heads/entropy").to_grid(), expected, rtol=1e-3)
        # What does not depend on eps is the same.
        for column in ("entropy_normalised", "uniform_nats"):
            np.testing.assert_allclose(
                store.ask("heads/entropy", eps=0.25).to_grid(column),
                store.ask("heads/entropy").to_grid(column),
                rtol=1e-6,
            )


def test_the_word_rule_changes_the_relations(exact: Path) -> None:
    with open_store(exact) as store:
        mean, first = (
            [
                (row["layer"], row["head"], row["relation"], row["correct"])
                for row in store.ask("relations/accuracy", **asked)
            ]
            for asked in ({}, {"pieces": "first"})
        )
        assert sorted(row[:3] for row in mean) == sorted(row[:3] for row in first)
        assert sorted(mean) != sorted(first)


def test_a_computed_table_is_kept_for_the_next_question(exact: Path, tmp_path: Path) -> None:
    with open_store(shutil.copytree(exact, tmp_path / "own.attn")) as store:
        first = store.ask("heads/entropy", eps=0.1).to_arrow()
        for maps in store.path.glob("segments/*/maps.zarr"):
            shutil.rmtree(maps)
        assert store.ask("heads/entropy", eps=0.1).to_arrow() == first
        assert len(store.ask("heads/cls_entropy", eps=0.1)) == 6


def test_a_store_that_kept_no_facts_computes_them(made: list[Made], exact: Path, tmp_path: Path) -> None:
    root = make_store(tmp_path / "maps.attn", made, precision="exact", tables=())
    with open_store(root) as bare, open_store(exact) as full:
        for question in ("heads/special", "relations/accuracy", "heads/confidence", "audit/rounding"):
            found, expected = bare.ask(question).to_pandas(), full.ask(question).to_pandas()
            for column in expected:
                if expected[column].dtype == np.float64:
                    np.testing.assert_allclose(found[column], expected[column], rtol=1e-5, atol=1e-6)
                else:
                    assert (found[column] == expected[column]).all(), (question, column)


def test_without_maps_the_refusal_names_what_is_missing(made: list[Made], tmp_path: Path) -> None:
    with open_store(make_store(tmp_path / "none.attn", made, kept=Kept("none", None, None, None))) as store:
        with pytest.raises(NotStored) as caught:
            store.ask("heads/entropy", eps=0.01)
        assert "'eps': 0.0001" in caught.value.found
        assert "no maps" in caught.value.found
        assert "eps=0.01" in caught.value.expected
        assert "Ingest again" in caught.value.remedy
    with open_store(make_store(tmp_path / "topk.attn", made, kept=Kept("topk", None, None, 2))) as store:
        with pytest.raises(NotStored, match="only the 2 largest weights"):
            store.ask("relations/best", pieces="max")
        assert len(store.ask("relations/best")) > 0


def test_kept_heads_are_computed_and_lists_over_all_heads_refused(made: list[Made], tmp_path: Path) -> None:
    kept = Kept("all", (1,), (0, 2), None)
    with open_store(make_store(tmp_path / "part.attn", made, precision="exact", kept=kept)) as store:
        found = store.ask("heads/entropy", eps=0.01)
        assert [(row["layer"], row["head"]) for row in found] == [(1, 0), (1, 2)]
        assert len(store.ask("heads/entropy")) == 6
        with pytest.raises(NotStored, match=r"layers \[1\] and heads \[0, 2\] only"):
            store.ask("relations/best", pieces="first")


@pytest.mark.parametrize(("most", "value"), [("_HELD", 4), ("_HELD_BYTES", None)])
def test_the_least_recently_used_tables_make_room(
    exact: Path, monkeypatch: pytest.MonkeyPatch, most: str, value: int | None
) -> None:
    with open_store(exact) as store:
        store.ask("heads/entropy", eps=0.9)
        (one,) = store.engine.computed._held.values()
        monkeypatch.setattr(computed, most, 4 * one.replaced_bytes if value is None else value)
        for eps in (0.1, 0.2, 0.3, 0.4, 0.1, 0.5):
            store.ask("heads/entropy", eps=eps)
        held = [dict(params)["eps"] for _, ((_, params),) in store.engine.computed._held]
        assert held == [0.3, 0.4, 0.1, 0.5]


def test_a_parameter_that_no_reduction_takes_is_an_error_of_the_question(store: Store, tmp_path: Path) -> None:
    mine = tmp_path / "mine.sql"
    mine.write_text("-- Mine.\n-- reads: head_facts(epsilon=0.1)\nselect count(*) as n from head_facts\n")
    with pytest.raises(BadQuestion, match="no parameter 'epsilon'"):
        store.ask(str(mine))


def test_a_question_of_ones_own_gets_its_facts(exact: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine.sql"
    mine.write_text("-- Mine.\n-- reads: head_facts(eps=0.5)\nselect sum(entropy_sum) as total from head_facts\n")
    with open_store(exact) as store:
        (row,) = store.ask(str(mine))
        (stored,) = store.sql("select sum(entropy_sum) as total from head_facts")
        assert row["total"] > stored["total"] * 1.05
