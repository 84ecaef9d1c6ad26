"""Tests that what is cited can be asked again with the same bytes, and that anything else is refused."""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import attnstore
from attnstore.errors import BadInput, Damaged, NotFound
from attnstore.job.refresh import refresh
from attnstore.share import recheck
from attnstore.share.citation import bibtex, json_text, of_store, paragraph
from attnstore.share.recheck import check, read_citation
from attnstore.store.answer_text import csv_text

ASKED: list[tuple[str, dict[str, Any]]] = [
    ("heads/entropy", {}),
    ("heads/positions", {}),
    ("relations/best", {"min_count": 1}),
    ("relations/accuracy", {"relation": "dep", "pieces": "max"}),
    ("patterns/features", {}),
    ("clusters/linkage", {}),
    ("probe/features", {}),
]

UNDONE = {
    r"{\textbackslash}": "\\",
    r"{\textbraceleft}": "{",
    r"{\textbraceright}": "}",
    r"{\textasciicircum}": "^",
    r"{\textasciitilde}": "~",
    r"{\textquotedbl}": '"',
    **{"\\" + mark: mark for mark in "%$&#_"},
}


def cited(store: Path, question: str, where: str | None = None, **params: Any) -> dict[str, Any]:
    with attnstore.open(store, threads=1) as opened:
        found: dict[str, Any] = json.loads(json_text(opened.ask(question, where=where, **params).cite()))
    return found


@pytest.mark.parametrize(("question", "params"), ASKED)
def test_a_citation_gives_the_same_bytes_again(tiny_store: Path, question: str, params: dict[str, Any]) -> None:
    citation = cited(tiny_store, question, **params)
    assert citation["rows"] > 0
    assert check(citation, tiny_store) == []


def test_the_hash_is_that_of_the_answer_as_csv(tiny_store: Path) -> None:
    with attnstore.open(tiny_store) as store:
        answer = store.ask("heads/entropy")
    wanted = hashlib.sha256(csv_text(answer.to_arrow()).encode()).hexdigest()
    assert answer.cite()["answer_sha256"] == wanted


def test_a_citation_says_who_made_the_maps_and_of_what(tiny_store: Path) -> None:
    citation = cited(tiny_store, "heads/entropy")
    info = json.loads((tiny_store / "store.json").read_text())
    assert citation["corpus"]["fingerprint"] == info["corpus"]["fingerprint"]
    assert citation["tokenizer"] == info["tokenizer"]
    assert citation["params"]["kind"] == "encoder"  # null was given
    assert {"model_files", "parser", "licence", "created", "versions", "sql", "source"} <= set(citation)
    assert str(tiny_store.parent) not in json.dumps(citation)


def test_a_condition_own_sql_and_a_statement_come_back_too(tiny_store: Path, tmp_path: Path) -> None:
    assert check(cited(tiny_store, "heads/entropy", where="n_tokens < 12"), tiny_store) == []
    own = tmp_path / "own.sql"
    own.write_text("-- Words.\n-- reads: words\nselect word, form from words where length(form) > $n order by all\n")
    citation = cited(tiny_store, str(own), n=3)
    own.unlink()
    assert check(citation, tiny_store) == []
    with attnstore.open(tiny_store, threads=1) as store:
        plain = store.sql("select count(*) as n from tokens where example = $e", e=1).cite()
    assert check(plain, tiny_store) == []


@pytest.mark.slow
def test_a_comparison_is_asked_again_of_both(tiny_store: Path, make_store: Callable[..., Path]) -> None:
    other = make_store("b.attn", keep__precision="exact")
    with (
        attnstore.open(tiny_store, threads=1) as a,
        attnstore.open(other, threads=1) as b,
        attnstore.compare(a, b) as both,
    ):
        citation = both.ask("compare/cosine").cite()
    assert check(citation, tiny_store, other) == []
    with pytest.raises(BadInput, match="it cites a comparison"):
        check(citation, tiny_store)
    with pytest.raises(Damaged, match="has the content hash"):
        check(citation, other, tiny_store)
    with pytest.raises(BadInput, match="two are given"):
        check(cited(tiny_store, "heads/entropy"), tiny_store, other)


def test_a_store_that_grew_answers_from_the_cited_snapshot_only(make_store: Callable[..., Path]) -> None:
    store = make_store()
    citation = cited(store, "heads/entropy")
    refresh(store, "offset_facts", {"reach": "2"})
    assert check(citation, store) == []
    with pytest.raises(Damaged, match="snapshot 2 of"):
        check(citation, store, snapshot=2)
    (store / "snapshots" / "00000001.json").unlink()
    with pytest.raises(NotFound, match="no snapshot 1"):
        check(citation, store)


def test_another_store_is_refused_also_where_the_store_alone_is_cited(
    tiny_store: Path, make_store: Callable[..., Path]
) -> None:
    with attnstore.open(tiny_store) as store:
        citation = of_store(store)
    assert check(citation, tiny_store) == []
    with pytest.raises(Damaged, match=citation["content_hash"]):
        check(citation, make_store("o.attn", title="another", keep__precision="exact"))


def test_another_answer_is_refused_with_what_differs(tiny_store: Path) -> None:
    citation = cited(tiny_store, "heads/entropy")
    with pytest.raises(Damaged, match=r"another answer, of 6 rows.*the citation was changed"):
        check(citation | {"answer_sha256": "0" * 64}, tiny_store)
    with pytest.raises(Damaged, match="expected 7 rows"):
        check(citation | {"rows": 7}, tiny_store)
    with pytest.raises(Damaged, match="other SQL in this release"):
        check(citation | {"rows": 7, "sql": "select 1"}, tiny_store)
    with pytest.raises(Damaged, match="several threads"):
        check(citation | {"rows": 7, "threads": None}, tiny_store)
    old = citation["versions"] | {"duckdb": "1.0.0"}
    with pytest.raises(Damaged, match=r"duckdb is \S+ here and was 1\.0\.0 when cited"):
        check(citation | {"rows": 7, "versions": old}, tiny_store)
    # Another release that gives the same bytes is worth a word, no error.
    (note,) = check(citation | {"versions": old}, tiny_store)
    assert "was 1.0.0 when cited" in note


@pytest.mark.parametrize(
    "sql",
    [
        "select content from read_text('{secret}')",
        "with x as (copy (select 1) to '{written}') select 1",
        "select * from '{secret}'",
    ],
)
def test_sql_of_a_citation_reads_and_writes_nothing_but_the_store(tiny_store: Path, tmp_path: Path, sql: str) -> None:
    secret, written = tmp_path / "secret.csv", tmp_path / "written.csv"
    secret.write_text("a\n1\n")
    text = sql.format(secret=secret, written=written)
    statement = cited(tiny_store, "heads/entropy") | {"question": None, "sql": text, "params": {}}
    for citation in (statement, cited(tiny_store, "heads/entropy", where="true") | {"where": f"exists ({text})"}):
        with pytest.raises(attnstore.AttnStoreError) as caught:
            check(citation, tiny_store)
        assert "another answer" not in str(caught.value)
    assert not written.exists()


def test_a_citation_names_no_file_to_read_a_question_from(tiny_store: Path, tmp_path: Path) -> None:
    own = tmp_path / "own.sql"
    own.write_text("-- Words.\nselect 1 as a\n")
    with pytest.raises(BadInput, match="no question"):
        check(cited(tiny_store, "heads/entropy") | {"question": str(own)}, tiny_store)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no valid JSON"),
        ("[1]", "a list"),
        ("[" * 100_000, "no valid JSON"),
        ('{"title": "x"}', "store_id=None"),
        (
            '{"store_id": "a", "title": "x", "snapshot": 1, "content_hash": "h", "versions": {}, "answer_sha256": 3}',
            "sql=None",
        ),
    ],
)
def test_a_file_that_is_no_citation_is_named(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "c.json").write_text(text)
    with pytest.raises(BadInput, match=message):
        read_citation(tmp_path / "c.json")


def test_a_huge_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recheck, "CITATION_BYTES", 10)
    (tmp_path / "c.json").write_text('{"title": "long"}')
    with pytest.raises(BadInput, match="10 at most"):
        read_citation(tmp_path / "c.json")


def entry(text: str) -> dict[str, str]:
    """The fields of one entry of BibTeX, braces counted as BibTeX counts them."""
    assert text.startswith("@misc{attnstore-")
    fields, at = {}, text.index(",") + 1
    while "=" in text[at:]:
        name, _, _ = text[at:].partition("=")
        start = text.index("{", at + len(name))
        depth, end = 0, start
        while True:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
            if depth == 0:
                break
        fields[name.strip()] = text[start + 1 : end - 1]
        assert text[end] == ","
        at = end + 1
    assert text[at:].strip() == "}"
    return fields


def undone(latex: str) -> str:
    found = ""
    while latex:
        whole = next((mark for mark in UNDONE if latex.startswith(mark)), latex[0])
        found, latex = found + UNDONE.get(whole, whole), latex[len(whole) :]
    return found


TITLES = [
    "{",
    "}}{",
    'a "b" \\cite{x} 50% of $x_1^2$ & #3 ~',
    "Ünïcode 注意",
    "two\nlines\r\n\ttabs\x00\u2028end",
    "@book{x,",
]


@pytest.mark.parametrize("title", TITLES)
def test_bibtex_survives_any_title(tiny_store: Path, title: str) -> None:
    citation = cited(tiny_store, "relations/best", min_count=1) | {"title": title}
    text = bibtex(citation)
    fields = entry(text)
    shown = undone(fields["title"].removeprefix("{").removesuffix("}"))
    plain = " ".join("".join(" " if mark < " " or mark == "\u2028" else mark for mark in title).split())
    assert shown == f"{plain}: attention of arrays".strip()
    assert undone(fields["note"]).count(citation["content_hash"]) == 1
    assert citation["answer_sha256"] in fields["note"]


@pytest.mark.parametrize("title", TITLES)
def test_the_package_bibtexparser_reads_it(tiny_store: Path, title: str) -> None:
    bibtexparser = pytest.importorskip("bibtexparser", minversion="2", reason="bibtexparser is not installed")
    with attnstore.open(tiny_store) as store:
        text = bibtex(of_store(store) | {"title": title})
    library = bibtexparser.parse_string(text)
    assert not library.failed_blocks
    (found,) = library.entries
    assert {field.key: field.value for field in found.fields} == {name: value for name, value in entry(text).items()}


@given(st.text())
def test_an_entry_of_any_text_has_its_braces_in_pairs(title: str) -> None:
    citation = {"title": title, "model": title, "revision": title, "store_id": "0", "snapshot": 1, "content_hash": "h"}
    fields = entry(bibtex(citation))
    assert set(fields) == {"title", "howpublished", "note"}
    assert not any(mark in bibtex(citation).replace("\n", "") for mark in map(chr, range(32)))


def test_the_paragraph_is_one_line_with_everything_that_a_reader_needs(tiny_store: Path) -> None:
    citation = cited(tiny_store, "heads/entropy", where="n_tokens < 12") | {"title": "two\nlines", "licence": "CC0"}
    text = paragraph(citation)
    assert text.count("\n") == 1
    assert text.endswith("\n")
    for part in (
        "two lines",
        citation["content_hash"],
        citation["answer_sha256"],
        "n_tokens < 12",
        "Clark et al.",
        "CC0",
    ):
        assert part in text


def test_a_damaged_copy_is_refused_before_it_is_asked(tiny_store: Path, tmp_path: Path) -> None:
    citation = cited(tiny_store, "heads/entropy")
    copy = tmp_path / "copy.attn"
    shutil.copytree(tiny_store, copy)
    (path,) = copy.glob("segments/*/head_facts.parquet")
    data = bytearray(path.read_bytes())
    data[20] ^= 1
    path.write_bytes(data)
    with pytest.raises(Damaged, match="head_facts"):
        check(citation, copy)
