"""This file proves that questions and views are found by name and that parameters are bound to their types."""

import pickle
from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnstore.catalogue.catalogue import Questions, bind, find, questions, views
from attnstore.catalogue.question import Param, Question
from attnstore.errors import BadInput, BadQuestion, NotFound
from attnstore.paths import shipped

HEADER = "-- Help of {name}.\n-- reads: t\n-- returns: x\n-- source: ours\n"


def folder_of(root: Path, files: dict[str, str]) -> Path:
    for name, sql in files.items():
        path = root / f"{name}.sql"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(HEADER.format(name=name) + sql, encoding="utf-8")
    return root


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    names = ("heads/entropy", "heads/special", "relations/best", "compare/best", "views/head_sums", ".cache/x", "top")
    return folder_of(tmp_path, {name: "select x from t" for name in names})


def question_with(*params: Param) -> Question:
    return Question("topic/q", "", "", (), {param.name: param for param in params}, (), "", Path("q.sql"))


def test_names_are_paths_without_suffix_and_views_are_no_questions(folder: Path) -> None:
    found = questions(folder)
    assert list(found) == ["compare/best", "heads/entropy", "heads/special", "relations/best", "top"]
    assert len(found) == 5
    assert "views/head_sums" not in found
    assert found["heads/entropy"].help == "Help of heads/entropy."


def test_a_file_is_read_once_and_only_when_it_is_asked_for(folder: Path) -> None:
    (folder / "heads" / "broken.sql").write_text("selec")
    found = questions(folder)
    assert "heads/broken" in found
    assert found["heads/entropy"] is found["heads/entropy"]
    with pytest.raises(BadQuestion, match=r"broken\.sql"):
        found["heads/broken"]


@pytest.mark.parametrize(
    ("asked", "nearest"),
    [("heads/entrpy", "heads/entropy"), ("best", "compare/best or relations/best"), ("head/special", "heads/special")],
)
def test_an_unknown_name_is_answered_with_the_nearest(folder: Path, asked: str, nearest: str) -> None:
    with pytest.raises(NotFound) as caught:
        questions(folder)[asked]
    assert caught.value.expected.startswith(nearest)
    assert "attnstore questions" in caught.value.remedy
    assert questions(folder).get(asked) is None


def test_a_name_like_no_other_still_gets_a_useful_answer(folder: Path) -> None:
    with pytest.raises(NotFound, match="`attnstore questions` lists them all"):
        questions(folder)["zzzzzz"]


def test_a_folder_that_is_absent_is_not_an_empty_catalogue(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="is no folder"):
        Questions(tmp_path / "nowhere")


def test_the_shipped_questions_are_the_default_and_all_of_them_load() -> None:
    found = questions()
    assert found.folder == shipped("queries")
    assert [question.name for question in found.values()] == list(found)
    for name in found:
        assert find(name) == found[name]


def test_a_path_that_ends_in_sql_is_the_callers_own_file(tmp_path: Path) -> None:
    (tmp_path / "mine.sql").write_text("select $a")
    question = find(str(tmp_path / "mine.sql"))
    assert question.name == "mine"
    assert bind(question, {"a": "2"}) == {"a": 2}


def test_a_path_to_nothing_says_so(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="there is no such file"):
        find(str(tmp_path / "mine.sql"))


def test_a_question_survives_the_way_to_another_process(folder: Path) -> None:
    question = questions(folder)["top"]
    assert pickle.loads(pickle.dumps(question)) == question


def test_views_come_after_those_they_read_and_can_be_created_in_that_order(tmp_path: Path) -> None:
    # b reads a through a join `using`, c reads b in a subquery, a reads d inside an expression of that name.
    files = {
        "views/a": "with d as (select x from d) select x from d",
        "views/b": "select x from t join a using (x)",
        "views/c": "select x from t where exists (select 1 from b where b.x = t.x);",
        "views/d": "select 1 as x union all select 2",
    }
    found = views(folder_of(tmp_path, files))
    names = [view.name for view in found]
    assert sorted(names) == ["a", "b", "c", "d"]
    assert names.index("d") < names.index("a") < names.index("b") < names.index("c")
    with duckdb.connect() as connection:
        connection.execute("create table t as select 2 as x")
        for view in found:
            connection.execute(f"create view {view.name} as {view.sql}")
        assert connection.execute("select x from c").fetchall() == [(2,)]
    assert found[0].help == "Help of views/d."
    assert found[0].returns[0].name == "x"


def test_a_common_table_expression_hides_the_view_of_that_name(tmp_path: Path) -> None:
    # Without the hiding rule, a and b would seem to read each other.
    files = {"views/a": "with b as (select 1 as x) select x from b", "views/b": "select x from a"}
    assert [view.name for view in views(folder_of(tmp_path, files))] == ["a", "b"]


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"views/a": "select x from b", "views/b": "select x from a"}, "a circle: "),
        ({"views/a": "select x from a"}, "the view reads itself"),
        ({"views/a": "select $p as x"}, r"the view uses \$p"),
        ({"views/a-b": "select 1 as x"}, "cannot be a table's name"),
        ({"views/a": "create table x as select 1"}, "of type CREATE"),
    ],
)
def test_a_view_that_cannot_be_one_is_refused(tmp_path: Path, files: dict[str, str], said: str) -> None:
    with pytest.raises(BadQuestion, match=said):
        views(folder_of(tmp_path, files))


def test_a_table_with_a_schema_is_no_view(tmp_path: Path) -> None:
    assert [view.name for view in views(folder_of(tmp_path, {"views/tokens": "select x from stored.tokens"}))] == [
        "tokens"
    ]


def test_the_shipped_views_are_in_an_order() -> None:
    place = shipped("queries") / "views"
    assert {view.name for view in views()} == {path.stem for path in place.glob("*.sql")}


def test_defaults_are_filled_and_strings_converted() -> None:
    question = question_with(
        Param("eps", "real", 0.0001),
        Param("min_count", "integer", 1),
        Param("relation", "text", None),
        Param("deep", "boolean", False),
        Param("mode", "text", "macro", ("macro", "micro")),
    )
    assert bind(question, {}) == {"eps": 0.0001, "min_count": 1, "relation": None, "deep": False, "mode": "macro"}
    bound = bind(question, {"min_count": "50", "eps": "1e-3", "relation": "nsubj", "deep": "True", "mode": "micro"})
    assert bound == {"eps": 0.001, "min_count": 50, "relation": "nsubj", "deep": True, "mode": "micro"}
    assert type(bound["min_count"]) is int


@pytest.mark.parametrize("word", ["null", "None", None])
def test_null_is_read_only_where_null_is_the_default(word: str | None) -> None:
    assert bind(question_with(Param("a", "integer", None)), {"a": word}) == {"a": None}
    with pytest.raises(BadInput, match=r"an integer for a = 1 \(integer\)"):
        bind(question_with(Param("a", "integer", 1)), {"a": word})


def test_numbers_of_numpy_become_numbers_of_python() -> None:
    question = question_with(Param("n", "integer"), Param("x", "real"), Param("b", "boolean"))
    bound = bind(question, {"n": np.int64(3), "x": np.float32(0.5), "b": np.bool_(True)})
    assert bound == {"n": 3, "x": 0.5, "b": True}
    assert [type(value) for value in bound.values()] == [int, float, bool]


@pytest.mark.parametrize(
    ("param", "value"),
    [
        (Param("a", "integer"), "5.5"),
        (Param("a", "integer"), 5.5),
        (Param("a", "integer"), True),
        (Param("a", "integer"), np.bool_(True)),
        (Param("a", "integer"), np.array([1, 2])),
        (Param("a", "integer"), [1]),
        (Param("a", "real"), "much"),
        (Param("a", "real"), float("nan")),
        (Param("a", "real"), "inf"),
        (Param("a", "real"), True),
        (Param("a", "text"), 5),
        (Param("a", "boolean"), 1),
        (Param("a", "boolean"), "yes"),
        (Param("a", "text", "b", ("b", "c")), "d"),
    ],
)
def test_a_value_of_another_type_or_outside_the_choices_is_refused(param: Param, value: object) -> None:
    with pytest.raises(BadInput, match="asking topic/q: a="):
        bind(question_with(param), {"a": value})


def test_a_number_below_the_least_is_refused_with_what_is_allowed() -> None:
    question = question_with(Param("a", "integer", None, least=0), Param("b", "real", 1.0, least=0.5))
    assert bind(question, {"a": 0, "b": "0.5"}) == {"a": 0, "b": 0.5}
    assert bind(question, {"a": None}) == {"a": None, "b": 1.0}
    for asked, expected in (({"a": -1}, "a=-1; expected 0 or more"), ({"b": 0.4}, "b=0.4; expected 0.5 or more")):
        with pytest.raises(BadInput, match=expected):
            bind(question, asked)


@pytest.mark.parametrize("name", sorted(questions()))
def test_no_shipped_question_draws_or_lists_fewer_than_nothing(name: str) -> None:
    for param in questions()[name].params.values():
        if param.name in ("bootstrap", "seed", "limit"):
            assert param.least == 0, param


def test_a_whole_real_number_passes_as_an_integer() -> None:
    assert bind(question_with(Param("a", "integer")), {"a": 50.0}) == {"a": 50}


def test_an_unknown_parameter_names_the_nearest_and_lists_all_with_defaults() -> None:
    question = question_with(Param("min_count", "integer", 1), Param("relation", "text", None))
    with pytest.raises(BadInput) as caught:
        bind(question, {"mincount": "5"})
    assert str(caught.value) == (
        "asking topic/q: there is no parameter 'mincount'; expected min_count = 1 (integer), relation = null (text). "
        "Did you mean min_count?"
    )
    with pytest.raises(BadInput, match="it takes no parameters"):
        bind(question_with(), {"a": 1})


def test_a_required_parameter_that_is_absent_is_named() -> None:
    with pytest.raises(BadInput, match=r"no value for a; expected a \(integer\). Write a=VALUE"):
        bind(question_with(Param("a", "integer")), {})


@pytest.mark.parametrize(
    ("text", "value"), [("5", 5), ("5.5", 5.5), ("true", True), ("null", None), ("nsubj", "nsubj"), ("", "")]
)
def test_an_undeclared_parameter_is_read_as_what_it_looks_like(text: str, value: object) -> None:
    bound = bind(question_with(Param("a", "any")), {"a": text})["a"]
    assert bound == value
    assert type(bound) is type(value)


@given(st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.booleans())
def test_what_is_written_out_is_read_back(value: object) -> None:
    kind = {int: "integer", float: "real", bool: "boolean"}[type(value)]
    question = question_with(Param("a", kind))  # type: ignore[arg-type]
    assert bind(question, {"a": str(value)}) == bind(question, {"a": value}) == {"a": value}
