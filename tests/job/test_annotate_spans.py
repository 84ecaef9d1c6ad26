"""New mentions and links reach a finished store as an addition: what an ingest with them would have stored."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import attnstore
from attnstore.errors import BadInput
from attnstore.format import names
from attnstore.format.commit import published
from attnstore.format.fact_tables import STORED
from attnstore.format.verify import verify
from attnstore.job.annotate import annotate_words
from attnstore.job.annotate_spans import annotate_links, annotate_mentions
from attnstore.job.run import ingest
from tests.conftest import SENTENCES, arrays_recipe
from tests.job.annotating import NEW, jsonl, rewritten, table

TEXTS = ("examples", "tokens", "words", "mentions", "links", "word_facts")
MENTIONS = [{"cluster": "clock", "start_word": 0, "end_word": 3}, {"cluster": 7, "start_word": 1, "end_word": 2}]
LINKS = [
    {
        "relation": "Theme",
        "source_start_word": 0,
        "source_end_word": 3,
        "target_start_word": 3,
        "target_end_word": 4,
        "core": True,
    }
]


def write(path: Path, *records: dict[str, Any]) -> Path:
    path.write_text("\n".join(map(json.dumps, records)) + "\n", encoding="utf-8")
    return path


def both(store: Path, folder: Path, *records: dict[str, Any]) -> None:
    """Annotate with the mentions and the links of the same objects."""
    path = write(folder / "spans.jsonl", *records)
    annotate_mentions(store, path)
    annotate_links(store, path)


@pytest.fixture
def spanned(tmp_path: Path, arrays_corpus: Path) -> Path:
    """The tiny store with a mention and a link in s0 and s3."""
    link = {name: int("end" in name) + ("target" in name) for name in LINKS[0] if name.endswith("word")}
    old = {"mentions": [{"cluster": "old", "start_word": 0, "end_word": 1}], "links": [{"relation": "old", **link}]}
    corpus = rewritten(arrays_corpus, tmp_path / "spanned", {"s0": old, "s3": old})
    ingest(arrays_recipe(corpus, keep__precision="exact"), tmp_path / "spanned.attn").close()
    return tmp_path / "spanned.attn"


@pytest.mark.parametrize("key", ["name", "text"])
def test_annotating_and_ingesting_are_two_roads_to_the_same_tables(
    tmp_path: Path, exact: Path, arrays_corpus: Path, key: str
) -> None:
    corpus = rewritten(arrays_corpus, tmp_path / "new", {"s0": {"mentions": MENTIONS, "links": LINKS}})
    ingest(arrays_recipe(corpus, keep__precision="exact"), tmp_path / "expected.attn").close()
    named = {"name": "s0"} if key == "name" else {"text": SENTENCES[0]}
    both(exact, tmp_path, {**named, "mentions": MENTIONS, "links": LINKS})
    assert published(exact, names.ADDITIONS) == ["000001-mentions", "000002-links"]
    for name in TEXTS:
        assert table(exact, name) == table(tmp_path / "expected.attn", name), name
    assert [row["core"] for row in table(exact, "links")] == [True]
    # The parse is left-branching: the head of a span is its first word.
    assert [(row["cluster"], row["head_word"]) for row in table(exact, "mentions")] == [("clock", 0), ("7", 1)]
    assert verify(exact, deep=True) == []


def test_examples_that_the_file_does_not_name_keep_theirs_and_an_empty_list_clears(
    tmp_path: Path, spanned: Path
) -> None:
    before = {name: table(spanned, name) for name in TEXTS}
    both(spanned, tmp_path, {"name": "s0", "mentions": MENTIONS, "links": []})
    assert [(row["example"], row["cluster"]) for row in table(spanned, "mentions")] == [
        (0, "clock"),
        (0, "7"),
        (3, "old"),
    ]
    assert table(spanned, "links") == [row for row in before["links"] if row["example"] == 3]
    for name in TEXTS:
        assert table(spanned, name, snapshot=1) == before[name]
        assert name in ("mentions", "links") or table(spanned, name) == before[name]


def test_no_map_is_needed(tmp_path: Path, arrays_corpus: Path) -> None:
    ingest(arrays_recipe(arrays_corpus, keep__maps="none"), tmp_path / "s.attn").close()
    both(tmp_path / "s.attn", tmp_path, {"name": "s0", "mentions": MENTIONS, "links": LINKS})
    assert (len(table(tmp_path / "s.attn", "mentions")), len(table(tmp_path / "s.attn", "links"))) == (2, 1)


def test_mentions_of_a_treebank_count_its_words(tmp_path: Path, exact: Path) -> None:
    cells = [("rain", "root", 0, "Entity=(1-object)"), ("fell", "x", 1, "_")]
    text = "# global.Entity = GRP-etype\n# sent_id = s3\n# text = rain fell\n"
    for number, (form, deprel, head, misc) in enumerate(cells, start=1):
        text += "\t".join([str(number), form, "_", "NOUN", "_", "_", str(head), deprel, "_", misc]) + "\n"
    (tmp_path / "m.conllu").write_text(text + "\n# sent_id = other\n1\tno\t_\t_\t_\t_\t_\t_\t_\t_\n\n")
    done = annotate_mentions(exact, tmp_path / "m.conllu")
    assert (done.addition, done.examples, done.unmatched) == ("000001-mentions", 1, ("other",))
    (found,) = table(exact, "mentions")
    assert found == {
        "example": 3,
        "mention": 0,
        "cluster": "1",
        "start_word": 0,
        "end_word": 1,
        "head_word": 0,
        "type": "nominal",
    }


def test_frames_and_pronouns_are_taken_as_their_corpora_have_them(tmp_path: Path, exact: Path) -> None:
    frame = {
        "frame": "Precipitation",
        "tokens": ["rain", "fell"],
        "target": {"start": 1, "end": 2},
        "frame_elements": [{"name": "Thing", "core": False, "start": 0, "end": 1}],
    }
    annotate_links(exact, write(tmp_path / "f.jsonl", frame))  # without an id: by its text
    (link,) = table(exact, "links")
    assert (link["example"], link["relation"], link["source_start_word"], link["target_start_word"], link["core"]) == (
        3,
        "Thing",
        0,
        1,
        False,
    )
    names_ = {"a": "she", "a_offset": 0, "a_coref": True, "b": "map", "b_offset": 17, "b_coref": False}
    item = {"text": SENTENCES[2], "pronoun": "him", "pronoun_offset": 9, **names_}
    annotate_mentions(exact, write(tmp_path / "g.jsonl", item))
    found = [(m["cluster"], m["start_word"], m["type"]) for m in table(exact, "mentions")]
    assert found == [("pronoun", 0, "proper"), ("pronoun", 2, "pronoun"), ("b", 4, "proper")]


def test_spans_over_other_words_go_to_the_words_at_the_same_characters(tmp_path: Path, exact: Path) -> None:
    annotate_words(exact, jsonl(tmp_path / "w.jsonl", NEW))
    forms = ["their", "neighbours'", "dog", "barked", "at", "us", "all", "night", "."]
    spans = [{"cluster": "n", "start_word": 0, "end_word": 2}, {"cluster": "u", "start_word": 5, "end_word": 6}]
    links = [{"relation": "r", "source_start_word": 0, "source_end_word": 2} | {"core": None}]
    links[0] |= {"target_start_word": 4, "target_end_word": 5}
    record: dict[str, Any] = {"text": SENTENCES[6], "words": forms, "mentions": spans, "links": links}
    both(exact, tmp_path, record)
    # Now "neighbours" and "'" are two words, "at us" is one; the head is the word whose governor lies outside.
    found = [(m["cluster"], m["start_word"], m["end_word"], m["head_word"]) for m in table(exact, "mentions")]
    assert found == [("n", 0, 3, 1), ("u", 5, 6, 5)]
    (link,) = table(exact, "links")
    assert [link[name] for name in list(link)[3:]] == [0, 3, 5, 6, None]
    with attnstore.open(exact) as store:
        forms_now = [row["form"] for row in store.sql("select form from words where example = 6 order by word")]
    assert forms_now == [form for form, _ in NEW["s6"]]


def test_a_place_without_a_word_of_the_store_is_named(tmp_path: Path, exact: Path) -> None:
    annotate_words(exact, jsonl(tmp_path / "w.jsonl", {"s3": [("rain", None)]}))
    record: dict[str, Any] = {"name": "s3", "text": "rain fell", "words": ["rain", "fell"]}
    record |= {"mentions": [{"cluster": "1", "start_word": 1, "end_word": 2}]}
    with pytest.raises(BadInput, match=r"s\.jsonl:1: no word of the store lies where 'fell' is"):
        annotate_mentions(exact, write(tmp_path / "s.jsonl", record))


def test_an_example_without_words_says_to_annotate_them_first(tmp_path: Path, arrays_corpus: Path) -> None:
    lines: dict[str, dict[str, Any]] = {f"s{number}": {"words": []} for number in range(len(SENTENCES))}
    ingest(arrays_recipe(rewritten(arrays_corpus, tmp_path / "bare", lines)), tmp_path / "s.attn").close()
    path = write(tmp_path / "m.jsonl", {"name": "s0", "mentions": MENTIONS})
    with pytest.raises(BadInput, match=r"m\.jsonl:1: example s0 has no words.*--words FILE"):
        annotate_mentions(tmp_path / "s.attn", path)
    annotate_words(tmp_path / "s.attn", jsonl(tmp_path / "w.jsonl", NEW))
    assert annotate_mentions(tmp_path / "s.attn", path).examples == 1


BAD_SPAN = {"cluster": "x", "start_word": 4, "end_word": 6}
PART = {"text": "rain fell", "words": ["rain", "fell"], "mentions": [{"cluster": "x", "start_word": 0, "end_word": 1}]}


@pytest.mark.parametrize(
    ("name", "record", "message"),
    [
        ("m.csv", {}, r"the ending '\.csv'; expected one of \.conllu, \.jsonl"),
        ("m.jsonl", {"name": "s0", "mentions": [BAD_SPAN]}, r"line 2: mentions\[0\] has start_word 4 .*within 0 to 5"),
        ("m.jsonl", {"name": "s0"}, "line 2: no 'mentions', only 'name'"),
        ("m.jsonl", {"name": "s0", "links": LINKS}, "line 2: no 'mentions', only 'links', 'name'"),
        ("m.jsonl", {"mentions": MENTIONS}, "line 2: neither a name nor a text"),
        ("m.jsonl", {"name": "s3", "mentions": []}, r"line 2: the name 's3' again, after m\.jsonl:1"),
        ("m.jsonl", {"name": "s0", "mentions": 3}, "line 2: mentions is int; expected a list"),
        ("m.jsonl", {"name": "s0", **PART}, r"m\.jsonl:2: example s0 has another text and other words"),
        ("m.jsonl", {**PART, "text": ""}, "line 2: neither a name nor a text"),
        ("m.jsonl", {"name": "s0", **PART, "text": ""}, r"line 2: words\[0\], 'rain', is not in the text"),
    ],
)
def test_a_file_that_cannot_be_used_adds_nothing(
    tmp_path: Path, exact: Path, name: str, record: dict[str, Any], message: str
) -> None:
    path = write(
        tmp_path / name, {"name": "s3", "mentions": [{"cluster": "1", "start_word": 0, "end_word": 1}]}, record
    )
    with pytest.raises(BadInput, match=message):
        annotate_mentions(exact, path)
    assert published(exact, names.ADDITIONS) == []


def test_links_outside_of_the_words_are_named_and_treebanks_hold_none(tmp_path: Path, exact: Path) -> None:
    with pytest.raises(BadInput, match=r"l\.jsonl, line 1: links\[0\] has target_start_word 3 and target_end_word 9"):
        annotate_links(
            exact, write(tmp_path / "l.jsonl", {"name": "s0", "links": [{**LINKS[0], "target_end_word": 9}]})
        )
    with pytest.raises(BadInput, match=r"the ending '\.conllu'; expected one of \.jsonl"):
        annotate_links(exact, tmp_path / "l.conllu")


@pytest.mark.parametrize("content", ["", "\n\n"])
def test_an_empty_file_is_told_what_json_lines_hold(tmp_path: Path, exact: Path, content: str) -> None:
    for annotate, what in ((annotate_mentions, "mentions"), (annotate_links, "links")):
        (tmp_path / "x.jsonl").write_text(content)
        with pytest.raises(BadInput, match=f"no {what} in it: the file is empty") as caught:
            annotate(exact, tmp_path / "x.jsonl")
        assert caught.value.expected == f"one object a line, with a list '{what}'"


def test_words_and_spans_of_an_entry_with_a_name_only_lie_in_the_text_of_the_store(tmp_path: Path, exact: Path) -> None:
    annotate_words(exact, jsonl(tmp_path / "w.jsonl", {"s3": [("rain fell", None)]}))
    spans = [{"cluster": "1", "start_word": 1, "end_word": 2}]
    entry = {"name": "s3", "words": ["rain", "fell"], "mentions": spans}
    other = {"name": "other", "words": ["no", "no"], "mentions": spans}
    done = annotate_mentions(exact, write(tmp_path / "m.jsonl", entry, other))
    assert (done.examples, done.unmatched) == (1, ("other",))
    # "fell" lies in the store's one word "rain fell".
    assert [(m["example"], m["start_word"], m["end_word"]) for m in table(exact, "mentions")] == [(3, 0, 1)]


def test_an_empty_list_clears_with_words_as_without(tmp_path: Path, spanned: Path) -> None:
    annotate_mentions(spanned, write(tmp_path / "m.jsonl", {"name": "s3", "words": ["rain"], "mentions": []}))
    assert [row["example"] for row in table(spanned, "mentions")] == [0]


def test_a_treebank_without_mentions_is_refused(tmp_path: Path, exact: Path) -> None:
    (tmp_path / "m.conllu").write_text("# sent_id = s3\n1\train\t_\t_\t_\t_\t0\troot\t_\t_\n\n")
    with pytest.raises(BadInput, match="no mentions in it; expected Entity= in the last column"):
        annotate_mentions(exact, tmp_path / "m.conllu")


def test_a_store_from_before_core_elements_were_told_apart_is_read_and_annotated(
    tmp_path: Path, arrays_corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without = pa.schema([field for field in STORED["links"] if field.name != "core"])
    plain = {name: value for name, value in LINKS[0].items() if name != "core"}
    corpus = rewritten(arrays_corpus, tmp_path / "c", {"s0": {"links": [plain]}, "s2": {"links": [plain]}})
    place = tmp_path / "s.attn"
    with monkeypatch.context() as patch:
        patch.setitem(STORED, "links", without)
        ingest(arrays_recipe(corpus), place).close()
    with attnstore.open(place) as store:
        (file,) = store.engine.files.paths("links")
        assert "core" not in pq.read_schema(file).names
        assert store.tables["links"]["core"] == "BOOLEAN"
    before = table(place, "links")
    assert [(row["example"], row["core"]) for row in before] == [(0, None), (2, None)]
    assert verify(place, deep=True) == []
    annotate_links(place, write(tmp_path / "l.jsonl", {"name": "s0", "links": LINKS}))
    assert table(place, "links") == [{**before[0], "core": True}, before[1]]
    assert verify(place, deep=True) == []
