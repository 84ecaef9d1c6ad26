"""New words and labels reach a finished store as an addition: what an ingest with them would have stored."""

import json
from collections.abc import Sequence
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
from attnstore.job import plan as plan_module
from attnstore.job.annotate import annotate_labels, annotate_words
from attnstore.job.run import ingest
from tests.conftest import SENTENCES, arrays_recipe, random_maps, write_arrays

Words = dict[str, list[tuple[str, int | None]]]

# Other words than blanks give: "neighbours'" in two, "old clock" as one. Governors count from 0, None is the root.
NEW: Words = {
    "s0": [("the", 1), ("old clock", None), ("stopped", 1), (".", 2)],
    "s3": [("rain", 1), ("fell", None)],
    "s6": [
        ("their", 1),
        ("neighbours", 3),
        ("'", 1),
        ("dog", 4),
        ("barked", None),
        ("at us", 4),
        ("all", 7),
        ("night", 4),
        (".", 4),
    ],
}


def record(words: Sequence[tuple[str, int | None]]) -> list[dict[str, Any]]:
    """Words as JSON Lines have them."""
    return [{"form": form, "governor": governor, "deprel": "x" if governor else "root"} for form, governor in words]


def jsonl(path: Path, words: Words, named: bool = True, **more: Any) -> Path:
    """A file of annotations for the sentences of the tiny corpus."""
    lines = [
        {**({"name": name} if named else {}), "text": SENTENCES[int(name[1:])], "words": record(found), **more}
        for name, found in words.items()
    ]
    path.write_text("\n".join(map(json.dumps, lines)) + "\n", encoding="utf-8")
    return path


def conllu(path: Path, words: Words, comment: str = "# sent_id = {name}\n# text = {text}\n") -> Path:
    """The same as CoNLL-U."""
    text = ""
    for name, found in words.items():
        text += comment.format(name=name, text=SENTENCES[int(name[1:])])
        for number, (form, governor) in enumerate(found, start=1):
            head = 0 if governor is None else governor + 1
            deprel = "x" if governor else "root"
            text += "\t".join([str(number), form, *"____", str(head), deprel, "_", "_"]) + "\n"
        text += "\n"
    path.write_text(text, encoding="utf-8")
    return path


def rewritten(corpus: Path, folder: Path, change: dict[str, dict[str, Any]]) -> Path:
    """The corpus with other keys for some examples, over the same maps."""
    folder.mkdir()
    lines = [json.loads(line) for line in corpus.read_text().splitlines()]
    for line in lines:
        line.update(change.get(line["name"], {}))
        line["maps"] = str(corpus.parent / "maps.npz")
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    return folder / "corpus.jsonl"


def table(store: Path, name: str, **pinned: Any) -> list[dict[str, Any]]:
    with attnstore.open(store, **pinned) as opened:
        return list(opened.sql(f"select * from {name} order by all"))


def word_facts(store: Path) -> pa.Table:
    """The rows of word_facts that count now."""
    with attnstore.open(store) as opened:
        found = pa.concat_tables(pq.read_table(path) for path in opened.engine.files.paths("word_facts"))
    return found.sort_by([("example", "ascending"), ("word", "ascending")])


@pytest.fixture
def exact(tmp_path: Path, arrays_corpus: Path) -> Path:
    """The tiny store at exact precision, with the words that blanks give."""
    ingest(arrays_recipe(arrays_corpus, keep__precision="exact"), tmp_path / "exact.attn").close()
    return tmp_path / "exact.attn"


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


def test_a_name_made_from_file_and_line_says_nothing_about_another_corpus(tmp_path: Path) -> None:
    # The store's example is corpus:2 and so is the second row of labels in corpus.csv, by chance.
    corpus = write_arrays(tmp_path / "c", SENTENCES[:2])
    lines = [{k: v for k, v in json.loads(line).items() if k != "name"} for line in corpus.read_text().splitlines()]
    maps = np.load(corpus.parent / "maps.npz")
    for number, line in enumerate(lines):
        np.savez(corpus.parent / f"{number}.npz", encoder=maps[f"s{number}/encoder"])
        line["maps"] = f"{number}.npz"
    corpus.write_text("\n".join(map(json.dumps, lines)) + "\n")
    ingest(arrays_recipe(corpus), tmp_path / "s.attn").close()
    assert [row["name"] for row in table(tmp_path / "s.attn", "examples")] == ["corpus:1", "corpus:2"]
    (tmp_path / "corpus.csv").write_text(f'text,label\n"{SENTENCES[0]}",first\n"{SENTENCES[1]}",second\n')
    annotate_labels(tmp_path / "s.attn", tmp_path / "corpus.csv")
    assert [row["label"] for row in table(tmp_path / "s.attn", "examples")] == ["first", "second"]


def test_what_matches_nothing_is_reported_and_nothing_at_all_refused(tmp_path: Path, exact: Path) -> None:
    path = jsonl(tmp_path / "w.jsonl", {"s3": NEW["s3"]})
    path.write_text(path.read_text() + json.dumps({"name": "other", "text": "no such text", "words": ["no"]}) + "\n")
    assert annotate_words(exact, path).unmatched == ("other",)
    path.write_text(json.dumps({"name": "other", "text": "no such text", "words": ["no"]}) + "\n")
    with pytest.raises(BadInput, match="no example of the store has the name or the text of other"):
        annotate_words(exact, path)
    assert published(exact, names.ADDITIONS) == ["000001-words"]


def test_equal_texts_take_their_annotations_in_order(tmp_path: Path) -> None:
    corpus = write_arrays(tmp_path / "c", ["rain fell"] * 3 + ["he left"])
    ingest(arrays_recipe(corpus), tmp_path / "s.attn").close()
    (tmp_path / "l.csv").write_text("text,label\nrain fell,a\nrain fell,b\nhe left,c\nhe left,d\n")
    done = annotate_labels(tmp_path / "s.attn", tmp_path / "l.csv")
    # The third "rain fell" gets the last label of that text; the second "he left" has no example left.
    assert [row["label"] for row in table(tmp_path / "s.attn", "examples")] == ["a", "b", "b", "c"]
    assert (done.examples, done.unmatched) == (4, ("l:5",))


def test_labels_replace_labels_and_leave_the_rest(tmp_path: Path, exact: Path) -> None:
    before = table(exact, "examples")
    for text in ("name,text,label\ns0,x,old\ns1,x,old\n", "name,text,label\ns1,x,new\ns2,x,\n"):
        (tmp_path / "l.csv").write_text(text)
        annotate_labels(exact, tmp_path / "l.csv")
    after = table(exact, "examples")
    assert [row["label"] for row in after] == ["old", "new", None, None, None, None, None]
    assert [{**row, "label": None} for row in after] == before
    assert [row["label"] for row in table(exact, "examples", snapshot=2)][:2] == ["old", "old"]
    assert verify(exact, deep=True) == []


def test_words_then_labels_keep_both(tmp_path: Path, exact: Path) -> None:
    (tmp_path / "l.csv").write_text("name,text,label\ns6,x,a\n")
    annotate_labels(exact, tmp_path / "l.csv")
    annotate_words(exact, jsonl(tmp_path / "w.jsonl", NEW))
    row = next(row for row in table(exact, "examples") if row["name"] == "s6")
    assert (row["label"], row["n_words"]) == ("a", len(NEW["s6"]))


def test_mentions_and_links_go_with_the_words_they_count(tmp_path: Path, arrays_corpus: Path) -> None:
    old = {
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
    maps = {"encoder": random_maps(rng, 2, 2, 2, 2), "cross": random_maps(rng, 2, 2, 3, 2)}
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
    line = {"name": "p", "text": "rain fell", "second": "it was wet", "maps": "m.npz"}
    line |= {"tokens": ["rain", "fell", "it", "was", "wet"], "parts": [0, 0, 1, 1, 1]}
    np.savez(folder / "m.npz", encoder=random_maps(np.random.default_rng(2), 1, 1, 5, 5))
    (folder / "corpus.jsonl").write_text(json.dumps(line))
    ingest(arrays_recipe(folder / "corpus.jsonl"), tmp_path / "s.attn").close()
    (tmp_path / "w.jsonl").write_text(json.dumps({"name": "p", "text": "rain fell", "words": ["rain", "fell"]}))
    with pytest.raises(BadInput, match=r"w\.jsonl:1: example p is a pair; expected both parts"):
        annotate_words(tmp_path / "s.attn", tmp_path / "w.jsonl")
    both = {"name": "p", "text": "rain fell", "second": "it was wet"}
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


def test_a_store_that_is_not_finished_is_refused(
    tmp_path: Path, arrays_corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_module, "SEGMENT_TOKENS", 20)
    monkeypatch.setattr("attnstore.job.run.SNAPSHOT_SECONDS", -1.0)
    real = attnstore.job.run.fill

    def stops(staging: Path, segment: Any, *rest: Any) -> Any:
        if segment.number == 1:
            raise KeyboardInterrupt
        return real(staging, segment, *rest)

    monkeypatch.setattr("attnstore.job.run.fill", stops)
    with pytest.raises(KeyboardInterrupt):
        ingest(arrays_recipe(arrays_corpus), tmp_path / "s.attn")
    (tmp_path / "l.csv").write_text("name,text,label\ns0,x,a\n")
    with pytest.raises(BadInput, match=r"1 of \d segments; expected a finished store"):
        annotate_labels(tmp_path / "s.attn", tmp_path / "l.csv")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("w.txt", "x", r"the ending '\.txt'; expected one of \.conllu"),
        ("w.jsonl", '{"name": "s3", "text": "rain fell"}', r"w\.jsonl:1: no words"),
        ("w.jsonl", '{"name": "s3", "text": "rain fell", "words": ["snow"]}', "'snow', is not in the text"),
        ("w.jsonl", '{"name": "s3", "text": "snow fell", "words": ["snow"]}', r"w\.jsonl:1: words\[0\], 'snow'"),
        ("w.jsonl", '{"name": "s3", "text": ""}', "its text is empty"),
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


def test_labels_without_a_label_are_refused(tmp_path: Path, exact: Path) -> None:
    (tmp_path / "l.csv").write_text("name,text\ns3,rain fell\n")
    with pytest.raises(BadInput, match="no label in it"):
        annotate_labels(exact, tmp_path / "l.csv")


def test_two_annotations_at_once_do_not_undo_each_other(
    tmp_path: Path, exact: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "l.csv").write_text("name,text,label\ns0,x,a\n")
    (tmp_path / "m.csv").write_text("name,text,label\ns1,x,b\n")
    real = attnstore.job.annotate.seal
    once: list[int] = []

    def meanwhile(*args: Any) -> Any:
        if not once:
            once.append(1)
            annotate_labels(exact, tmp_path / "m.csv")
        return real(*args)

    monkeypatch.setattr("attnstore.job.annotate.seal", meanwhile)
    with pytest.raises(BadInput, match=r"another addition was made meanwhile.*Run the same command again"):
        annotate_labels(exact, tmp_path / "l.csv")
    annotate_labels(exact, tmp_path / "l.csv")
    assert [row["label"] for row in table(exact, "examples")][:2] == ["a", "b"]
    assert not list(exact.glob("additions/.staging-*"))


def test_an_annotation_that_was_published_and_not_committed_is_taken_up(
    tmp_path: Path, exact: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "l.csv").write_text("name,text,label\ns0,x,a\n")
    (tmp_path / "m.csv").write_text("name,text,label\ns1,x,b\n")
    with monkeypatch.context() as patch:
        patch.setattr("attnstore.job.annotate.commit", lambda *args: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            annotate_labels(exact, tmp_path / "l.csv")
    assert table(exact, "examples")[0]["label"] is None
    annotate_labels(exact, tmp_path / "m.csv")
    assert [row["label"] for row in table(exact, "examples")][:2] == ["a", "b"]
