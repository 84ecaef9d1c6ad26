"""Tests of the door to a store."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from attnstore.errors import BadInput, BadQuestion, NotFound
from attnstore.format.manifest import Kind
from attnstore.store.store import Store
from attnstore.store.store import open as open_store
from tests.store.making import KINDS, Made, make_store, random_examples


def _run(code: str, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code, *args], capture_output=True, text=True, check=True)


def test_opening_loads_none_of_the_heavy_libraries(folder: Path) -> None:
    code = """
import sys
from attnstore.store.store import open
with open(sys.argv[1]) as store:
    repr(store), store.units, store.info, store.snapshot
print(*{"duckdb", "pyarrow", "zarr", "numpy", "pandas", "torch"} & set(sys.modules))
"""
    assert _run(code, str(folder)).stdout.split() == []


def test_sql_without_maps_does_not_load_zarr(folder: Path) -> None:
    code = """
import sys
from attnstore.store.store import open
with open(sys.argv[1]) as store:
    store.ask("heads/entropy")
print(*{"zarr", "torch", "pyarrow._dataset"} & set(sys.modules))
"""
    assert _run(code, str(folder)).stdout.split() == []


def test_opening_takes_less_than_fifty_milliseconds(folder: Path) -> None:
    taken = []
    for _ in range(5):
        start = time.perf_counter()
        open_store(folder).close()
        taken.append(time.perf_counter() - start)
    assert min(taken) < 0.05


def test_a_store_left_open_at_the_end_of_python_is_quiet(folder: Path) -> None:
    code = """
import sys
from attnstore.store.store import open
store = open(sys.argv[1])
print(len(store.sql("select weight from attention where layer = 1")))
"""
    done = _run(code, str(folder))
    assert done.stderr == ""
    assert int(done.stdout) > 0


def test_a_closed_store_says_so_and_keeps_what_it_handed_out(folder: Path) -> None:
    store = open_store(folder)
    found, weights = store.sql("from heads"), store.attention(0, layer=0)
    store.close()
    store.close()
    assert len(found) == 6
    assert weights.weights.sum() > 0
    for use in (lambda: store.sql("select 1"), lambda: store.ask("heads/entropy"), lambda: store.attention(0)):
        with pytest.raises(BadInput, match="closed"):
            use()
    assert store.info.title == "made by a test"


def test_a_store_shows_model_counts_and_sizes(store: Store) -> None:
    text = repr(store)
    for part in ("random r1", "encoder 2 x 3", "7 of 7", "standard, maps: all", "3 segments", str(store.path)):
        assert part in text
    assert store.snapshot.content_hash[:16] in text
    assert "<table>" in store._repr_html_()


def test_html_of_a_store_is_escaped(made: list[Made], tmp_path: Path) -> None:
    root = make_store(tmp_path / "<script>", made[:1])
    assert "<script>" not in open_store(root)._repr_html_()


def test_questions_are_those_that_ship(store: Store) -> None:
    assert "relations/best" in store.questions
    assert store.questions["heads/entropy"].paint == "entropy_nats"


def test_an_unknown_question_or_parameter_comes_with_the_nearest(store: Store) -> None:
    with pytest.raises(NotFound, match="heads/entropy"):
        store.ask("heads/entropi")
    with pytest.raises(BadInput, match="Did you mean mode"):
        store.ask("heads/entropy", mod="micro")
    with pytest.raises(BadInput, match="one of macro, micro"):
        store.ask("heads/entropy", mode="mean")
    with pytest.raises(BadInput, match="no value for relation"):
        store.ask("relations/evidence")
    with pytest.raises(NotFound, match="layer=2; expected a layer of this store, 0-1"):
        store.ask("relations/accuracy", layer=2)
    with pytest.raises(NotFound, match="a kind of this store: encoder"):
        store.ask("heads/entropy", kind="decoder")


def test_the_store_s_first_kind_answers_unless_another_is_asked_for(tmp_path: Path) -> None:
    made = random_examples(3, (6, 5), KINDS)
    with open_store(make_store(tmp_path / "two.attn", made, kinds=KINDS)) as store:
        assert store.kinds == ("encoder", "decoder", "cross")
        assert store.ask("heads/entropy").to_grid().shape == (2, 2)
        assert store.ask("heads/entropy").cite()["params"]["kind"] == "encoder"
        assert store.ask("heads/entropy", kind="cross").to_grid().shape == (3, 2)
        heads = store.sql("select distinct kv_head from heads where kind = 'decoder'").to_arrow().to_pylist()
        assert heads == [{"kv_head": 0}]  # two heads share one
        with pytest.raises(NotFound, match="a layer of this store, 0-1"):
            store.ask("relations/accuracy", layer=2)
        assert len(store.ask("relations/accuracy", layer=2, kind="decoder")) > 0
        assert len(store.ask("relations/accuracy", kind="cross")) == 0
    only = {"decoder": Kind(1, 2, 2, "source", "source", True)}
    made = random_examples(3, (6, 5), only)
    with open_store(make_store(tmp_path / "one.attn", made, kinds=only)) as store:
        assert store.ask("heads/entropy").cite()["params"]["kind"] == "decoder"
        assert len(store.ask("relations/best")) > 0


def test_a_question_of_ones_own_is_asked_by_its_path(store: Store, tmp_path: Path) -> None:
    mine = tmp_path / "mine.sql"
    mine.write_text("select layer, count(*) as n from heads where head >= $least group by all order by all")
    assert list(store.ask(str(mine), least="1")) == [{"layer": 0, "n": 2}, {"layer": 1, "n": 2}]
    with pytest.raises(BadInput, match="least"):
        store.ask(str(mine))
    mine.write_text("delete from heads")
    with pytest.raises(BadQuestion):
        store.ask(str(mine))
