"""Tests of the ways out of an answer."""

import importlib
import json
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import polars
import pyarrow as pa
import pytest

from attnstore.errors import BadInput, MissingExtra, NotFound
from attnstore.store.store import Store


def test_rows_are_dicts_in_order(store: Store) -> None:
    found = store.sql("select layer, head from heads order by all")
    assert len(found) == 6
    assert found.columns == ("layer", "head")
    assert list(found) == [{"layer": layer, "head": head} for layer in (0, 1) for head in range(3)]


def test_any_library_that_takes_arrow_takes_a_result(store: Store) -> None:
    found = store.sql("select layer, head, kind from heads order by all")
    assert pa.table(found) == found.to_arrow()
    assert polars.DataFrame(found).equals(found.to_polars())
    assert found.to_polars().shape == (6, 3)
    assert list(found.to_pandas().columns) == ["layer", "head", "kind"]
    np.testing.assert_array_equal(found.to_numpy()["head"], [0, 1, 2, 0, 1, 2])


def test_sums_and_decimals_are_plain_numbers(store: Store) -> None:
    found = store.sql("select sum(layer) as total, 1.5 as half, sum(weight) as w from heads, (select 0.25 as weight)")
    assert list(found) == [{"total": 3, "half": 1.5, "w": 1.5}]
    assert [field.type for field in found.to_arrow().schema] == [pa.int64(), pa.float64(), pa.float64()]
    json.dumps(list(found))
    (row,) = store.sql("select sum(x) as huge from (select 9223372036854775807 as x from range(4))")
    assert int(row["huge"]) == 4 * 9223372036854775807


def test_a_grid_has_layers_down_and_heads_across(store: Store) -> None:
    found = store.sql("select layer, head, (10 * layer + head)::double as value from heads where layer + head <> 3")
    np.testing.assert_array_equal(found.to_grid(), [[0, 1, 2], [10, 11, np.nan]])
    np.testing.assert_array_equal(found.to_grid("head"), [[0, 1, 2], [0, 1, np.nan]])
    assert store.sql("select layer, head, 1.0 as value from heads where layer > 5").to_grid().shape == (0, 0)


def test_a_question_knows_the_column_that_it_paints(store: Store) -> None:
    found = store.ask("heads/entropy")
    np.testing.assert_array_equal(found.to_grid(), found.to_grid("entropy_nats"))
    assert found.to_grid().shape == (2, 3)


def test_a_grid_of_several_rows_for_a_head_is_refused_with_the_column_to_choose_by(store: Store) -> None:
    with pytest.raises(BadInput, match="metric"):
        store.ask("heads/positions").to_grid()
    with pytest.raises(BadInput, match="named by column="):
        store.sql("select layer, head, 1.0 as a, 2.0 as b from heads").to_grid()
    with pytest.raises(NotFound, match="layer"):
        store.sql("select head, 1.0 as a from heads").to_grid()
    with pytest.raises(NotFound, match="one of layer, head, a"):
        store.sql("select layer, head, 1.0 as a from heads").to_grid("b")


def test_an_xarray_dataset_needs_dims_that_identify_a_row(store: Store) -> None:
    found = store.ask("heads/positions").to_xarray(["metric", "layer", "head"])
    assert dict(found.sizes) == {"metric": 3, "layer": 2, "head": 3}
    row = next(row for row in store.ask("heads/positions") if row["metric"] == "next" and row["layer"] == 1)
    assert float(found["value"].sel(metric="next", layer=1, head=row["head"])) == row["value"]
    with pytest.raises(BadInput, match="several rows with the same layer, head"):
        store.ask("heads/positions").to_xarray(["layer", "head"])
    with pytest.raises(NotFound, match="'hed'"):
        store.ask("heads/positions").to_xarray(["layer", "hed"])


def test_a_citation_identifies_the_answer(store: Store) -> None:
    cited = store.ask("heads/entropy", mode="micro").cite()
    assert cited["store_id"] == "0123456789abcdef"
    assert cited["content_hash"] == store.snapshot.content_hash
    assert (cited["snapshot"], cited["model"], cited["revision"]) == (1, "random", "r1")
    assert (cited["question"], cited["source"]) == ("heads/entropy", "Clark et al. 2019, section 3.3")
    assert cited["params"] == {"kind": "encoder", "mode": "micro", "eps": 0.0001, "variant": "smoothed"}
    assert "from head_facts" in cited["sql"]
    assert set(cited["versions"]) == {"attnstore", "duckdb", "pyarrow", "zarr"}
    json.dumps(cited)
    own = store.sql("select $x as x", x=1).cite()
    assert (own["question"], own["sql"], own["params"]) == (None, "select $x as x", {"x": 1})


def test_asking_again_what_was_cited_gives_the_same(store: Store) -> None:
    first = store.ask("relations/best", min_count=2)
    cited = first.cite()
    again = store.ask(cited["question"], **cited["params"])
    assert again.to_arrow() == first.to_arrow()


def test_an_answer_shows_its_first_rows_and_how_many_there_are(store: Store) -> None:
    text = repr(store.sql("select layer, head, 0.123456789 as w from heads order by all"))
    assert text.splitlines()[:2] == ["layer  head  w", "0      0     0.123457"]
    assert text.endswith("6 rows")
    assert repr(store.sql("from range(30)")).endswith("30 rows, 20 shown")
    assert repr(store.sql("select null as a, 'x\ny' as b")).splitlines()[1].split() == ["x", "y"]


def test_html_of_an_answer_is_escaped(store: Store) -> None:
    text = store.sql("""select '<img src=x onerror=1>' as "<b>" """)._repr_html_()
    assert "<img" not in text
    assert "<b>" not in text
    assert "&lt;img" in text


@pytest.mark.parametrize(
    ("package", "use"),
    [
        ("pandas", lambda found: found.to_pandas()),
        ("polars", lambda found: found.to_polars()),
        ("xarray", lambda found: found.to_xarray(["layer", "head"])),
        ("matplotlib", lambda found: found.plot()),
    ],
)
def test_an_optional_package_that_is_absent_is_named(
    store: Store, monkeypatch: pytest.MonkeyPatch, package: str, use: Any
) -> None:
    import_module = importlib.import_module

    def without(name: str) -> ModuleType:
        if name.partition(".")[0] == package:
            raise ModuleNotFoundError(name)
        return import_module(name)

    monkeypatch.setattr(importlib, "import_module", without)
    with pytest.raises(MissingExtra, match=rf"'{package}' is not installed.*pip install"):
        use(store.ask("heads/entropy"))


def test_a_picture_is_drawn_on_the_axes_given(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, Any]] = []

    class Axes:
        """Stands in for matplotlib's axes, which need not be installed."""

        def __getattr__(self, name: str) -> Any:
            def called(*args: Any, **options: Any) -> "Axes":
                calls.append((name, args))
                return self

            return called

        @property
        def figure(self) -> "Axes":
            return self

    axes = Axes()
    monkeypatch.setattr(importlib, "import_module", lambda name: axes)
    found = store.ask("heads/entropy")
    assert found.plot(ax=axes) is axes
    drawn: Mapping[str, Any] = dict(calls)
    np.testing.assert_array_equal(drawn["imshow"][0], found.to_grid())
    assert drawn["set_title"] == ("heads/entropy: entropy_nats",)
    assert (drawn["set_xlabel"], drawn["set_ylabel"]) == (("head",), ("layer",))


def test_a_picture_of_any_sql_can_be_described(store: Store) -> None:
    pytest.importorskip("matplotlib").use("Agg")
    found = store.sql("select layer, head, 10.0 * layer + head as value, 'x' as name from heads")
    np.testing.assert_array_equal(found.plot().images[0].get_array(), found.to_grid())
    assert len(found.plot(picture="bars(value, by=head)").patches) == 6
    with pytest.raises(NotFound, match="paints nothing"):
        found.plot(picture="value")
    summed = store.sql("select layer, head, sum(1.0 * layer) from heads group by all order by all")
    assert summed.plot("sum((1.0 * layer))").images[0].get_array().tolist() == [[0.0] * 3, [1.0] * 3]
    with pytest.raises(BadInput, match="hold no numbers"):
        store.sql("select 1 as a").plot()
    with pytest.raises(NotFound, match="no column 'b'"):
        found.plot("b")


def test_the_grid_of_a_question_is_of_numbers_also_where_it_paints_texts(tmp_path: Path, store: Store) -> None:
    path = tmp_path / "mine.sql"
    path.write_text(
        "-- returns: layer, head, label, value\n-- paint: grid(label), grid(value)\n"
        "select layer, head, 'a' as label, 1.0 + head as value from heads\n"
    )
    np.testing.assert_array_equal(store.ask(str(path)).to_grid(), [[1, 2, 3], [1, 2, 3]])
