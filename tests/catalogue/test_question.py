"""This file proves that a question's header is read exactly, and that every mistake in it names its line."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from attnstore.catalogue.question import REQUIRED, Column, Param, Question, Read, load
from attnstore.errors import AttnStoreError, BadQuestion, NotFound

GOOD = """\
-- How much weight the heads keep on themselves.
-- Averaged over examples.
--
-- Ends are exclusive.
-- reads:   head_facts(eps=$eps, drop=sep, share=0.25, note='a, b'), tokens
-- params:  eps real = 0.0001, mode text in (macro, micro) = macro,
--   min_count integer = 1, relation text = null, deep boolean = true, example integer
-- returns: layer, head, entropy_nats [nats, mean], n
-- source:  Clark et al. (2019), section 3.1: figure 2
-- paint:   entropy_nats
--
-- A note of the author: it does not belong to the header.
select layer, head, avg(x) as entropy_nats, count(*) as n -- $nothing
from t
where m = $mode and c >= $min_count and r is not distinct from $relation and $deep and e = $example
group by all;
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "mine.sql"
    path.write_text(text, encoding="utf-8")
    return path


def loaded(folder: Path, text: str, *, own: bool = False) -> Question:
    return load(write(folder, text), "topic/mine", own=own)


def header(*, reads: str = "t", params: str = "a integer = 1", returns: str = "layer, head, x", more: str = "") -> str:
    return (
        f"-- Help.\n-- reads: {reads}\n-- params: {params}\n-- returns: {returns}\n-- source: ours\n{more}"
        "select layer, head, x from t where y = $a\n"
    )


def test_a_complete_header_is_read_into_its_parts(tmp_path: Path) -> None:
    question = loaded(tmp_path, GOOD)
    assert question.name == "topic/mine"
    assert question.help == (
        "How much weight the heads keep on themselves. Averaged over examples.\n\nEnds are exclusive."
    )
    assert question.reads == (
        Read("head_facts", {"eps": "eps"}, {"drop": "sep", "share": 0.25, "note": "a, b"}),
        Read("tokens"),
    )
    assert list(question.params.values()) == [
        Param("eps", "real", 0.0001),
        Param("mode", "text", "macro", ("macro", "micro")),
        Param("min_count", "integer", 1),
        Param("relation", "text", None),
        Param("deep", "boolean", True),
        Param("example", "integer", REQUIRED),
    ]
    assert question.returns == (
        Column("layer"),
        Column("head"),
        Column("entropy_nats", "nats, mean"),
        Column("n"),
    )
    assert question.source == "Clark et al. (2019), section 3.1: figure 2"
    (picture,) = question.pictures
    assert (picture.kind, picture.name) == ("grid", "grid")
    assert picture.columns == {"value": "entropy_nats", "layer": "layer", "head": "head"}
    assert question.paint == "entropy_nats"


def test_the_statement_is_kept_as_written_without_the_header(tmp_path: Path) -> None:
    sql = loaded(tmp_path, GOOD).sql
    assert sql.startswith("-- A note of the author")
    assert "-- $nothing\nfrom t" in sql
    assert sql.endswith("group by all")


def test_parameters_of_the_statement_are_told_from_those_of_facts_only(tmp_path: Path) -> None:
    question = loaded(tmp_path, GOOD)
    assert question.sql_params == {"mode", "min_count", "relation", "deep", "example"}
    assert set(question.params) - question.sql_params == {"eps"}


def test_a_needed_fact_gets_the_values_of_the_question_and_its_own_literals() -> None:
    read = Read("head_facts", {"eps": "threshold"}, {"drop": "sep"})
    assert read.wanted({"threshold": 0.5, "other": 1}) == {"eps": 0.5, "drop": "sep"}


def test_a_quoted_null_is_text_and_a_bare_one_is_null(tmp_path: Path) -> None:
    question = loaded(tmp_path, header(params="a text = 'null'"))
    assert question.params["a"].default == "null"
    assert loaded(tmp_path, header(params="a text = null")).params["a"].default is None


def test_two_quotes_inside_quotes_stand_for_one(tmp_path: Path) -> None:
    assert loaded(tmp_path, header(params="a text = 'it''s'")).params["a"].default == "it's"


def test_a_parameter_prints_as_one_would_write_it() -> None:
    assert str(Param("mode", "text", "macro", ("macro", "micro"))) == "mode = macro (text: macro, micro)"
    assert str(Param("seed", "integer", 0, least=0)) == "seed = 0 (integer, 0 or more)"
    assert str(Param("relation", "text", None)) == "relation = null (text)"
    assert str(Param("deep", "boolean", True)) == "deep = true (boolean)"
    assert str(Param("example", "integer")) == "example (integer)"


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("-- Help.\n-- reads: t\nselect 1", 1, "lacks returns, source"),
        ("-- reads: t\n-- returns: x\n-- source: s\nselect 1 as x", 1, "a first line of help"),
        ("select 1", 1, "lacks reads, returns, source, a first line of help"),
        ("-- Help.\n-- param: a integer = 1\nselect $a", 2, "Did you mean `params:`"),
        ("-- Help.\n-- reads: t\n-- colour: x\nselect 1", 3, "the key `colour:` is unknown"),
        ("-- Help.\n-- reads: t\n-- reads: u\nselect 1", 3, "a second time"),
        ("-- Help.\n-- reads: t\n-- returns: x\n-- stray words\nselect 1", 4, "neither a key nor"),
        (header(params="a integr = 1"), 3, "one of the types integer, real, text, boolean"),
        (header(params="a integer = many"), 3, "expected an integer"),
        (header(params="a integer = '1'"), 3, "the value '1'"),
        (header(params="a real = nan"), 3, "expected a finite number"),
        (header(params="a text in (b, c) = d"), 3, "expected one of b, c"),
        (header(params="a text in () = d"), 3, "expected a value"),
        (header(params="a integer from 2 = 1"), 3, "expected 2 or more"),
        (header(params="a integer from b = 1"), 3, "expected an integer"),
        (header(params="a text from b = c"), 3, "expected a comma or the end"),
        (header(params="a text in (b, c"), 3, "expected `)`"),
        (header(params="a integer = 1 2"), 3, "a comma or the end"),
        (header(params="a integer = 1, a real = 2"), 3, "a new parameter's name"),
        (header(params="a integer = 1,, b real = 2"), 3, "nothing before a comma"),
        (header(params="a text = 'open"), 3, "a quote is opened"),
        (header(params="a integer = 1,\n--   b integer = x"), 4, "expected an integer"),
        (header(params="a integer = 1, b integer = 2"), 3, "declares b, which neither"),
        (header(params=""), 3, "$a is used and `params:` does not declare it"),
        (header(reads="f(eps=$nothing)"), 2, "$nothing is used"),
        (header(reads="f(eps)"), 2, "expected `=`"),
        (header(reads="f(e=1, e=2)"), 2, "each parameter of a fact once"),
        (header(returns="layer, x [nats"), 4, "a bracket is opened"),
        (header(returns="layer, x, x"), 4, "each column once"),
        (header(more="-- paint: y\n"), 6, "no column y"),
        (header(returns="layer, x", more="-- paint: x\n"), 6, "no column head"),
        (header(more="-- paint: layers(y)\n"), 6, "no column y"),
        (header(more="-- paint: x,\n--   layers(x, by=y)\n"), 7, "no column y"),
        (header(more="-- paint: pie(x)\n"), 6, "a kind of picture: grid, layers"),
        (header(more="-- paint: bars(x)\n"), 6, "a picture of kind bars without by"),
        (header(more="-- paint: bars(x, value=x)\n"), 6, "each of value, baseline, by"),
        (header(more="-- paint: layers(x, colour=x)\n"), 6, "each of value, layer, head, by, line at most once"),
        (header(more="-- paint: matrix(x, layer, head, x, x, x, x)\n"), 6, "each of value, row, column, by"),
        (header(more="-- paint: layers()\n"), 6, "expected a column"),
        (header(more="-- paint: layers(x\n"), 6, "expected `)`"),
        (header(more="-- paint: layers(x) x\n"), 6, "a comma or the end"),
        (header(more="-- paint: evidence\n"), 6, "no column predicted_word, sentence, word"),
        (header(more="-- paint:\n"), 6, "`paint:` is empty"),
    ],
)
def test_a_mistake_in_the_header_names_file_line_and_what_is_wrong(
    tmp_path: Path, text: str, line: int, said: str
) -> None:
    with pytest.raises(BadQuestion) as caught:
        loaded(tmp_path, text)
    assert caught.value.doing == f"reading {tmp_path / 'mine.sql'}, line {line}"
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("select 1; select 2", "it holds 2 statements"),
        ("", "it holds 0 statements"),
        ("-- only a comment", "it holds 0 statements"),
        ("insert into t values (1)", "of type INSERT"),
        ("copy t to 'x'", "of type COPY"),
        ("attach 'x' as y", "of type ATTACH"),
        ("pivot t on a using sum(b)", "of type MULTI"),
        ("select ?", "a parameter without a name"),
        ("select $1", "a parameter without a name"),
    ],
)
def test_anything_but_one_select_with_named_parameters_is_refused(tmp_path: Path, sql: str, said: str) -> None:
    with pytest.raises(BadQuestion, match=said):
        loaded(tmp_path, sql, own=True)


def test_an_error_of_the_parser_names_the_line_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(BadQuestion) as caught:
        loaded(tmp_path, header().replace("where y", "wehre (y"))
    assert caught.value.doing.endswith("mine.sql, line 6")
    assert "syntax error" in caught.value.found


def test_an_own_file_needs_no_header(tmp_path: Path) -> None:
    question = loaded(tmp_path, "select $b, $a\n", own=True)
    assert question.help == ""
    assert question.reads == ()
    assert question.returns == ()
    assert list(question.params.values()) == [Param("a", "any"), Param("b", "any")]
    assert question.sql == "select $b, $a"


def test_an_own_file_may_have_some_keys_and_those_are_checked(tmp_path: Path) -> None:
    question = loaded(tmp_path, "-- Mine: a trial.\n-- params: a real = 2\nselect $a", own=True)
    assert question.help == "Mine: a trial."
    assert question.params == {"a": Param("a", "real", 2.0)}
    with pytest.raises(BadQuestion, match="does not declare"):
        loaded(tmp_path, "-- params: a real = 2\nselect $a, $b", own=True)


def test_an_own_file_with_reads_only_takes_the_parameters_of_both(tmp_path: Path) -> None:
    question = loaded(tmp_path, "-- reads: f(eps=$cut)\nselect $b", own=True)
    assert set(question.params) == {"b", "cut"}
    assert question.sql_params == {"b"}


def test_a_byte_order_mark_and_windows_line_ends_change_nothing(tmp_path: Path) -> None:
    path = tmp_path / "mine.sql"
    path.write_bytes(b"\xef\xbb\xbf" + header().replace("\n", "\r\n").encode())
    assert load(path, "x").returns == (Column("layer"), Column("head"), Column("x"))


def test_a_line_separator_inside_a_text_of_the_statement_stays(tmp_path: Path) -> None:
    assert loaded(tmp_path, "-- Help.\nselect 'a\u2028b\x0cc'\n", own=True).sql == "select 'a\u2028b\x0cc'"


def test_a_file_that_is_absent_or_not_text_says_so(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="No such file"):
        load(tmp_path / "none.sql", "none")
    (tmp_path / "bytes.sql").write_bytes(b"select '\xff'")
    with pytest.raises(BadQuestion, match="byte 8 is not UTF-8"):
        load(tmp_path / "bytes.sql", "bytes")


PIECES = st.sampled_from(
    [
        *("-- ", "--   ", "reads:", "params:", "returns:", "paint:", "a", "integer", "text", "in", "(", ")", ",", "="),
        *("'", "[", "]", "$a", "null", "1", "\n", "select", " ", ";", "é", "\x00", "\u2028", "/*", "*/", '"'),
    ]
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(pieces=st.lists(PIECES, max_size=25), own=st.booleans())
def test_no_text_raises_anything_but_our_own_errors(tmp_path: Path, pieces: list[str], own: bool) -> None:
    caught: list[AttnStoreError] = []
    try:
        question = loaded(tmp_path, "-- Help.\n" + "".join(pieces), own=own)
        assert question.sql_params <= set(question.params)
    except BadQuestion as error:
        caught.append(error)
    assert all("mine.sql" in error.doing for error in caught)
