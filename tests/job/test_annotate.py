"""New words reach a finished store as an addition: what an ingest with them would have stored."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import attnstore
from attnstore.errors import BadInput, NotStored
from attnstore.format import names
from attnstore.format.commit import published
from attnstore.format.verify import verify
from attnstore.job.annotate import annotate_labels, annotate_words
from attnstore.job.run import ingest
from tests.conftest import arrays_recipe, random_maps
from tests.job.annotating import NEW, conllu, jsonl, record, rewritten, table


def word_facts(store: Path) -> pa.Table:
    """The rows of word_facts that count now."""
    with attnstore.open(store) as opened:
        found = pa.concat_tables(pq.read_table(path) for path in opened.engine.files.paths("word_facts"))
    return found.sort_by([("example", "ascending"), ("word", "ascending")])


@pytest.fixture
def expected(tmp_path: Path, arrays_corpus: Path) -> Path:
    """The store that an ingest with the new words makes."""
    corpus = rewritten(arrays_corpus, tmp_path / "new", {name: {"words": record(words)} for name, words in NEW.items()})
    ingest(arrays_recipe(corpus, keep__precision="exact"), tmp_path / "expected.attn").close()
    return tmp_path / "expected.attn"


@pytest.mark.parametrize("write", [jsonl, conllu])
def test_annotating_and_ingesting_are_two_roads_to_the_same_tables(
    tmp_path: Path, exact: Path, expected: Path, write: Any
) -> None:
    path = write(tmp_path / f"words.{write.__name__}", NEW)
    before = word_facts(exact)
    done = annotate_words(exact, path)
    assert (done.examples, done.unmatched) == (3, ())
    assert done.addition == "000001-words"
    for name in ("examples", "tokens", "words", "mentions", "links", "word_facts"):
        assert table(exact, name) == table(expected, name), name
    assert word_facts(exact).equals(word_facts(expected))  # to the last bit, at exact precision
    assert not word_facts(exact).equals(before)
    assert verify(exact, deep=True) == []


@pytest.mark.parametrize("precision", ["standard", "compact"])
def test_from_rounded_maps_the_facts_differ_by_the_rounding_only(
    tmp_path: Path, arrays_corpus: Path, expected: Path, precision: str
) -> None:
    place = tmp_path / "s.attn"
    ingest(arrays_recipe(arrays_corpus, keep__precision=precision), place).close()
    annotate_words(place, jsonl(tmp_path / "w.jsonl", NEW))
    found, wanted = word_facts(place), word_facts(expected)
    assert found.select(["example", "kind", "word"]).equals(wanted.select(["example", "kind", "word"]))
    # A word has two pieces at most: two weights are added. Both sides are in half precision.
    bound = 2 * {"standard": 4.9e-4, "compact": 4e-3}[precision] + 2**-11
    for name in ("attends_to_weight", "attended_by_weight"):
        ours, theirs = (np.array([np.array(row) for row in t[name].to_pylist()], object) for t in (found, wanted))
        for one, other in zip(ours, theirs, strict=True):
            assert np.abs(one.astype(float) - other.astype(float)).max() <= bound


def test_the_older_snapshot_still_answers_as_before(tmp_path: Path, exact: Path) -> None:
    before = {name: table(exact, name) for name in ("examples", "tokens", "words", "word_facts")}
    annotate_words(exact, jsonl(tmp_path / "w.jsonl", NEW))
    for name, rows in before.items():
        assert table(exact, name, snapshot=1) == rows
        assert table(exact, name) != rows
    with attnstore.open(exact, snapshot=1) as old, attnstore.open(exact) as new:
        assert old.snapshot.content_hash != new.snapshot.content_hash
        # Nine words between [CLS] and [SEP]; of the new nine, "'" has no token of its own.
        assert len(old.attention(6, layer=0, head=0, level="word").queries) == 11
        assert len(new.attention(6, layer=0, head=0, level="word").queries) == 10


def test_words_are_found_by_text_where_no_name_is_given(tmp_path: Path, exact: Path, expected: Path) -> None:
    done = annotate_words(exact, jsonl(tmp_path / "w.jsonl", NEW, named=False))
    assert (done.examples, done.unmatched) == (3, ())
    assert table(exact, "words") == table(expected, "words")


def test_words_of_an_entry_with_a_name_only_are_found_in_the_text_of_the_store(
    tmp_path: Path, exact: Path, expected: Path
) -> None:
    lines = [{"name": name, "words": record(words)} for name, words in NEW.items()]
    lines.append({"name": "other", "words": ["whatever"]})
    (tmp_path / "w.jsonl").write_text("\n".join(map(json.dumps, lines)))
    done = annotate_words(exact, tmp_path / "w.jsonl")
    assert (done.examples, done.unmatched) == (3, ("other",))
    for name in ("tokens", "words"):
        assert table(exact, name) == table(expected, name), name


def test_words_of_both_sides_need_a_name_only(tmp_path: Path) -> None:
    ingest(arrays_recipe(two_sided(tmp_path / "c")), tmp_path / "s.attn").close()
    line = {"id": "a", "words": ["rain"], "target_words": ["il", "a plu"]}
    (tmp_path / "w.jsonl").write_text(json.dumps(line))
    annotate_words(tmp_path / "s.attn", tmp_path / "w.jsonl")
    found = [(row["side"], row["form"], row["start_char"]) for row in table(tmp_path / "s.attn", "words")]
    assert found == [("source", "rain", 0), ("target", "il", 0), ("target", "a plu", 3)]


def test_words_are_found_by_their_joined_text(tmp_path: Path, arrays_corpus: Path) -> None:
    # As a treebank has it: "It's." is fed as "It 's ." The names differ as well.
    folder = tmp_path / "joined"
    folder.mkdir()
    rng = np.random.default_rng(0)
    line = {"name": "a", "text": "It 's .", "tokens": ["It", "'s", "."], "words": ["It", "'s", "."], "maps": "m.npz"}
    np.savez(folder / "m.npz", encoder=random_maps(rng, 1, 2, 3, 3))
    (folder / "corpus.jsonl").write_text(json.dumps(line))
    ingest(arrays_recipe(folder / "corpus.jsonl"), tmp_path / "s.attn").close()
    text = "# sent_id = u1\n# text = It's.\n1\tIt\tit\tPRON\t_\t_\t2\tnsubj\t_\tSpaceAfter=No\n"
    text += "2\t's\tbe\tAUX\t_\t_\t0\troot\t_\tSpaceAfter=No\n3\t.\t.\tPUNCT\t_\t_\t2\tpunct\t_\t_\n\n"
    (tmp_path / "tree.conllu").write_text(text)
    assert annotate_words(tmp_path / "s.attn", tmp_path / "tree.conllu").examples == 1
    found = table(tmp_path / "s.attn", "words")
    assert [(w["form"], w["deprel"], w["start_char"], w["end_char"]) for w in found] == [
        ("It", "nsubj", 0, 2),
        ("'s", "root", 3, 5),
        (".", "punct", 6, 7),
    ]


def test_what_matches_nothing_is_reported_and_nothing_at_all_refused(tmp_path: Path, exact: Path) -> None:
    path = jsonl(tmp_path / "w.jsonl", {"s3": NEW["s3"]})
    path.write_text(path.read_text() + json.dumps({"name": "other", "text": "no such text", "words": ["no"]}) + "\n")
    assert annotate_words(exact, path).unmatched == ("other",)
    path.write_text(json.dumps({"name": "other", "text": "no such text", "words": ["no"]}) + "\n")
    with pytest.raises(BadInput, match="no example of the store has the name or the text of other"):
        annotate_words(exact, path)
    assert published(exact, names.ADDITIONS) == ["000001-words"]


def test_words_then_labels_keep_both(tmp_path: Path, exact: Path) -> None:
    (tmp_path / "l.csv").write_text("name,text,label\ns6,x,a\n")
    annotate_labels(exact, tmp_path / "l.csv")
    annotate_words(exact, jsonl(tmp_path / "w.jsonl", NEW))
    row = next(row for row in table(exact, "examples") if row["name"] == "s6")
    assert (row["label"], row["n_words"]) == ("a", len(NEW["s6"]))


def test_mentions_and_links_go_with_the_words_they_count(tmp_path: Path, arrays_corpus: Path) -> None:
    old: dict[str, Any] = {
        "mentions": [{"cluster": "clock", "start_word": 0, "end_word": 3}],
        "links": [{"relation": "r", **dict.fromkeys(("source_start_word", "target_start_word"), 3)}],
    }
    old["links"][0] |= dict.fromkeys(("source_end_word", "target_end_word"), 4)
    corpus = rewritten(arrays_corpus, tmp_path / "c", {"s0": old})
    ingest(arrays_recipe(corpus), tmp_path / "s.attn").close()
    assert (len(table(tmp_path / "s.attn", "mentions")), len(table(tmp_path / "s.attn", "links"))) == (1, 1)
    # The new words come without either: spans over the old words would point at others.
    annotate_words(tmp_path / "s.attn", jsonl(tmp_path / "w.jsonl", NEW))
    assert table(tmp_path / "s.attn", "mentions") == table(tmp_path / "s.attn", "links") == []
    assert verify(tmp_path / "s.attn", deep=True) == []
    mention = {"cluster": "clock", "start_word": 0, "end_word": 2}
    annotate_words(tmp_path / "s.attn", jsonl(tmp_path / "w2.jsonl", {"s0": NEW["s0"]}, mentions=[mention]))
    (found,) = table(tmp_path / "s.attn", "mentions")
    assert (found["example"], found["end_word"]) == (0, 2)


def two_sided(folder: Path) -> Path:
    """A corpus with a target side: encoder, decoder and cross maps, words on both sides."""
    folder.mkdir()
    rng = np.random.default_rng(1)
    line = {
        "name": "a",
        "text": "rain fell",
        "tokens": ["rain", "fell"],
        "words": [{"form": "rain", "governor": 1, "deprel": "nsubj"}, {"form": "fell", "deprel": "root"}],
        "target": "il a plu",
        "target_tokens": ["il", "a", "plu"],
        "target_words": [{"form": "il", "governor": 2, "deprel": "expl"}, "a", {"form": "plu", "deprel": "root"}],
        "maps": "m.npz",
    }
    maps: dict[str, Any] = {"encoder": random_maps(rng, 2, 2, 2, 2), "cross": random_maps(rng, 2, 2, 3, 2)}
    np.savez(folder / "m.npz", decoder=random_maps(rng, 2, 2, 3, 3, causal=True), **maps)
    (folder / "corpus.jsonl").write_text(json.dumps(line))
    return folder / "corpus.jsonl"


def test_words_of_the_target_side_stay_where_the_annotation_has_none(tmp_path: Path) -> None:
    ingest(arrays_recipe(two_sided(tmp_path / "c")), tmp_path / "s.attn").close()
    before = [row for row in table(tmp_path / "s.attn", "words") if row["side"] == "target"]
    tokens = [row for row in table(tmp_path / "s.attn", "tokens") if row["side"] == "target"]
    line = {"name": "a", "text": "rain fell", "words": ["rain fell"]}
    (tmp_path / "w.jsonl").write_text(json.dumps(line))
    annotate_words(tmp_path / "s.attn", tmp_path / "w.jsonl")
    after = table(tmp_path / "s.attn", "words")
    assert [row for row in after if row["side"] == "target"] == before
    assert len(before) == 3
    assert [row for row in table(tmp_path / "s.attn", "tokens") if row["side"] == "target"] == tokens
    assert [row["form"] for row in after if row["side"] == "source"] == ["rain fell"]
    kinds = {(row["kind"], row["word"]) for row in table(tmp_path / "s.attn", "word_facts")}
    assert kinds == {("encoder", 0), *(("decoder", n) for n in range(3)), *(("cross", n) for n in range(3))}


def test_words_of_the_target_side_are_replaced_where_the_annotation_has_them(tmp_path: Path) -> None:
    ingest(arrays_recipe(two_sided(tmp_path / "c")), tmp_path / "s.attn").close()
    line = {"name": "a", "text": "rain fell", "target": "il a plu", "words": ["rain"], "target_words": ["il", "a plu"]}
    (tmp_path / "w.jsonl").write_text(json.dumps(line))
    annotate_words(tmp_path / "s.attn", tmp_path / "w.jsonl")
    forms = [(row["side"], row["form"]) for row in table(tmp_path / "s.attn", "words")]
    assert forms == [("source", "rain"), ("target", "il"), ("target", "a plu")]


def test_a_pair_needs_words_of_both_parts(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    folder.mkdir()
    line: dict[str, Any] = {"name": "p", "text": "rain fell", "second": "it was wet", "maps": "m.npz"}
    line |= {"tokens": ["rain", "fell", "it", "was", "wet"], "parts": [0, 0, 1, 1, 1]}
    np.savez(folder / "m.npz", encoder=random_maps(np.random.default_rng(2), 1, 1, 5, 5))
    (folder / "corpus.jsonl").write_text(json.dumps(line))
    ingest(arrays_recipe(folder / "corpus.jsonl"), tmp_path / "s.attn").close()
    (tmp_path / "w.jsonl").write_text(json.dumps({"name": "p", "text": "rain fell", "words": ["rain", "fell"]}))
    with pytest.raises(BadInput, match=r"w\.jsonl:1: example p is a pair; expected both parts"):
        annotate_words(tmp_path / "s.attn", tmp_path / "w.jsonl")
    both: dict[str, Any] = {"name": "p", "text": "rain fell", "second": "it was wet"}
    both["words"] = ["rain", {"form": "it", "part": 1}, {"form": "wet", "part": 1}]
    (tmp_path / "w.jsonl").write_text(json.dumps(both))
    annotate_words(tmp_path / "s.attn", tmp_path / "w.jsonl")
    assert [(w["form"], w["part"]) for w in table(tmp_path / "s.attn", "words")] == [("rain", 0), ("it", 1), ("wet", 1)]


@pytest.mark.parametrize("keys", [{"keep__maps": "topk:2"}, {"keep__maps": "none"}, {"keep__layers": [0]}])
def test_a_store_without_every_map_is_refused(tmp_path: Path, arrays_corpus: Path, keys: dict[str, Any]) -> None:
    ingest(arrays_recipe(arrays_corpus, **keys), tmp_path / "s.attn").close()
    with pytest.raises(NotStored, match="not every map was kept"):
        annotate_words(tmp_path / "s.attn", jsonl(tmp_path / "w.jsonl", NEW))
    # Labels need no map.
    (tmp_path / "l.csv").write_text("name,text,label\ns0,x,a\n")
    assert annotate_labels(tmp_path / "s.attn", tmp_path / "l.csv").examples == 1


def test_a_store_without_facts_gets_words_and_no_facts(tmp_path: Path, arrays_corpus: Path) -> None:
    ingest(arrays_recipe(arrays_corpus, keep__facts="none"), tmp_path / "s.attn").close()
    annotate_words(tmp_path / "s.attn", jsonl(tmp_path / "w.jsonl", NEW))
    assert not (tmp_path / "s.attn/additions/000001-words/word_facts.parquet").exists()
    assert len([w for w in table(tmp_path / "s.attn", "words") if w["example"] == 6]) == len(NEW["s6"])


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("w.txt", "x", r"the ending '\.txt'; expected one of \.conllu"),
        ("w.jsonl", '{"name": "s3", "text": "rain fell"}', r"w\.jsonl:1: no words"),
        ("w.jsonl", '{"name": "s3", "text": "rain fell", "words": ["snow"]}', "'snow', is not in the text"),
        ("w.jsonl", '{"name": "s3", "text": "snow fell", "words": ["snow"]}', r"w\.jsonl:1: words\[0\], 'snow'"),
        ("w.jsonl", '{"name": "s3", "words": ["snow"]}', r"line 1: words\[0\], 'snow', is not in the text"),
        (
            "w.jsonl",
            '{"text": "", "words": ["snow"]}',
            "line 1: neither a name nor a text, in the fields 'text', 'words'",
        ),
        (
            "w.jsonl",
            '{"name": "s3", "words": ["rain"]}\n{"id": "s3"}',
            r"line 2: the name 's3' again, after w\.jsonl:1",
        ),
        ("w.jsonl", "\n", "line 1: nothing to read: the file is empty"),
        ("w.jsonl", "{", "line 1"),
        ("w.csv", "name,text\ns3,rain fell\n", "no words"),
    ],
)
def test_a_file_that_cannot_be_used_adds_nothing(
    tmp_path: Path, exact: Path, name: str, text: str, message: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(BadInput, match=message):
        annotate_words(exact, tmp_path / name)
    assert published(exact, names.ADDITIONS) == []
    assert not list(exact.glob("additions/*"))
