"""A store with less in it: what stays answers as before, what goes is gone from every file, and is told."""

import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import attnstore
from attnstore.errors import BadInput, NotStored
from attnstore.format.fact_tables import STORED
from attnstore.format.verify import verify
from attnstore.job.annotate import annotate_labels
from attnstore.share.less import less
from attnstore.share.words_hidden import EMPTY, RULES
from tests.conftest import SENTENCES
from tests.share.made import answers, column, maker, maps_of, same, tree, with_token_ids

WORDS = sorted({word for text in SENTENCES for word in re.findall(r"[a-z]{4,}", text)})
REPEATED = ("the gardener saw the harbour and the map", "the map , the clock , the boats , and rain", *SENTENCES)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Several segments, with labels that are words of their own."""
    made = maker(tmp_path_factory.mktemp("less"))("source.attn", REPEATED, corpus__licence="CC BY 4.0")
    labels = made.with_name("labels.jsonl")
    labels.write_text("".join(f'{{"name": "s{n}", "label": "{("joyful", "gloomy")[n % 2]}"}}\n' for n in range(9)))
    annotate_labels(made, labels)
    return made


@pytest.fixture(scope="module")
def nameless(source: Path) -> Path:
    return less(source, source.with_name("nameless.attn"), no_text=True)


def told(path: Path) -> dict[str, object]:
    """What store.json says was left out."""
    return dict(json.loads((path / "store.json").read_bytes())["left_out"])


def everything(path: Path) -> bytes:
    """All that can be read from a store: every file as it lies, and what Parquet files hold unpacked, footers too."""
    parts = []
    for file in sorted(path.rglob("*")):
        if file.is_file():
            parts += [str(file.relative_to(path)).encode(), file.read_bytes()]
        if file.suffix == ".parquet":
            table = pq.read_table(file)
            for name in table.schema.names:
                parts += [str(value).encode() for value in table[name].to_pylist()]
            parts.append(str(pq.read_metadata(file).to_dict()).encode())
    return b"\n".join(parts).lower()


# Words without text


def test_a_store_without_text_is_sound_and_says_so(source: Path, nameless: Path) -> None:
    assert verify(nameless, deep=True) == []
    assert told(nameless) == {"text": True}
    with attnstore.open(source) as before, attnstore.open(nameless) as after:
        origin = json.loads((nameless / "store.json").read_bytes())["made_from"][0]
        assert origin["store_id"] == before.info.store_id
        assert origin["content_hash"] == before.snapshot.content_hash
        assert after.info.corpus["licence"] == "CC BY 4.0"


def test_no_word_of_the_corpus_is_in_any_file(source: Path, nameless: Path, tmp_path: Path) -> None:
    # Words that a store of no words has too, such as those that columns are described with, tell nothing.
    bare = less(maker(tmp_path)("bare.attn", ("qqqqq zzzzz", "xxxx")), tmp_path / "bare-nameless.attn", no_text=True)
    ours = everything(bare)
    telling = [word for word in (*WORDS, "joyful", "gloomy") if word.encode() not in ours]
    assert len(telling) > 20
    full, hidden = everything(source), everything(nameless)
    assert all(word.encode() in full for word in telling)
    assert [word for word in telling if word.encode() in hidden] == []
    assert b"corpus.jsonl" in full
    assert b"corpus.jsonl" not in hidden


def test_the_hash_of_the_texts_is_gone(nameless: Path) -> None:
    with attnstore.open(nameless) as store:
        assert store.info.corpus["fingerprint"] == ""
        assert "path" not in store.info.recipe["corpus"]


def test_equal_words_have_equal_numbers_and_others_have_others(source: Path, nameless: Path) -> None:
    for table, name, equal in (
        ("words", "form", str.lower),
        ("tokens", "text", str),
        ("tokens", "token_id", str),
        ("examples", "label", str),
    ):
        plain = [equal(str(value)) for value in column(source, table, name)] if table != "examples" else None
        hidden = column(nameless, table, name)
        if plain is None:
            with attnstore.open(source) as store:
                plain = store.sql("select label from examples order by example").to_arrow()["label"].to_pylist()
        assert len(set(zip(plain, hidden, strict=True))) == len(set(plain)) == len(set(hidden)), (table, name)


def test_numbers_follow_neither_occurrence_nor_alphabet_nor_frequency(source: Path, tmp_path: Path) -> None:
    plain = [form.lower() for form in column(source, "words", "form")]
    words = [word for word in dict.fromkeys(plain) if re.search("[a-z]", word)]
    counts = Counter(plain)
    orders = {
        "occurrence": words,
        "alphabet": sorted(words),
        "frequency": sorted(words, key=lambda word: (-counts[word], word)),
        "length": sorted(words, key=lambda word: (len(word), word)),
    }
    # The mean over five exports of a rank correlation: of 45 words each is 0.15 in size, so of five 0.067.
    sizes: dict[str, list[float]] = {name: [] for name in orders}
    seen = []
    for turn in range(5):
        made = less(source, tmp_path / f"{turn}.attn", no_text=True, facts_only=True)
        hidden = dict(zip(plain, column(made, "words", "form"), strict=True))
        number = {word: int(hidden[word].removeprefix("w")) for word in words}
        seen.append(tuple(number.values()))
        for name, order in orders.items():
            ranks = np.argsort(np.argsort([number[word] for word in order]))
            sizes[name].append(float(np.corrcoef(ranks, np.arange(len(order)))[0, 1]))
    assert len(set(seen)) == 5
    assert all(abs(np.mean(found)) < 0.4 for found in sizes.values()), sizes


def test_a_dictionary_does_not_find_the_words_again(source: Path, tmp_path: Path) -> None:
    """Whoever hashes or numbers a list of words in some usual way hits no more words than chance does."""
    import hashlib
    import zlib

    made = less(source, tmp_path / "target.attn", no_text=True, facts_only=True)
    hidden = column(made, "words", "form")
    plain = [form.lower() for form in column(source, "words", "form")]
    truth = {word: int(value[1:]) for word, value in zip(plain, hidden, strict=True) if value.startswith("w")}
    n = max(truth.values()) + 1
    ways = {
        "crc32": lambda word: zlib.crc32(word.encode()),
        "md5": lambda word: int(hashlib.md5(word.encode()).hexdigest(), 16),
        "sha1": lambda word: int(hashlib.sha1(word.encode()).hexdigest(), 16),
        "sha256": lambda word: int(hashlib.sha256(word.encode()).hexdigest(), 16),
        "blake2": lambda word: int(hashlib.blake2b(word.encode()).hexdigest(), 16),
        "hash": hash,
    }
    text = " ".join(map(str, hidden))
    for name, way in ways.items():
        assert sum(way(word) % n == number for word, number in truth.items()) < len(truth) / 4, name
        assert not any(f"{way(word) % 2**32:x}" in text for word in truth), name


def test_token_ids_are_others_and_drawn_anew(tmp_path: Path) -> None:
    made = with_token_ids(maker(tmp_path)("source.attn", REPEATED))
    with attnstore.open(made) as store:
        plain = store.sql("select token_id from tokens order by example, token").to_arrow()["token_id"].to_pylist()
    one, two = (column(less(made, tmp_path / name, no_text=True), "tokens", "token_id") for name in ("one", "two"))
    distinct = sorted(set(zip(plain, one, two, strict=True)))
    assert len(distinct) == len(set(plain)) > 20
    assert sum(b == c for _, b, c in distinct) < len(distinct) / 4
    # Numbers below how many there are, not in the order of the vocabulary.
    assert sorted(b for _, b, _ in distinct) == list(range(len(distinct)))
    assert sum(rank == b for rank, (_, b, _) in enumerate(distinct)) < len(distinct) / 4


def test_every_column_of_text_was_judged() -> None:
    """A new column of text has to be hidden, left empty, or named here as one that tells no words."""
    tags = {
        "kind", "side", "cut", "special", "upos", "xpos", "deprel", "aligned", "type", "query_class", "key_class",
        "pattern", "task", "metric", "intervention", "head_set", "plan", "series", "ranking", "kinds",
    }  # fmt: skip
    for table, schema in STORED.items():
        for field in schema:
            kind = field.type.value_type if pa.types.is_list(field.type) else field.type
            if pa.types.is_string(kind) and not (table == "compositions" and field.name == "relation"):
                hidden = field.name in RULES.get(table, {}) or field.name in EMPTY.get(table, ())
                assert hidden or field.name in tags, f"{table}.{field.name}"


def test_statistics_and_maps_stay(source: Path, nameless: Path) -> None:
    before, after = answers(source), answers(nameless)
    shown = [name for name in before if name.startswith("audit/misaligned")]
    for name in shown:  # it shows words
        assert before.pop(name).num_rows == after.pop(name).num_rows
    same(before, after)
    assert maps_of(source) == maps_of(nameless)
    for table, name in (("words", "start_char"), ("words", "end_char"), ("tokens", "punct"), ("words", "governor")):
        assert column(source, table, name) == column(nameless, table, name)
    before_files, after_files = tree(source / "segments"), tree(nameless / "segments")
    assert all(after_files[name] == found for name, found in before_files.items() if "maps.zarr" in name)


def test_a_condition_that_may_tell_a_word_is_not_kept_without_text(source: Path, tmp_path: Path) -> None:
    open_ = less(source, tmp_path / "open.attn", examples="text like '%gardener%'")
    hidden = less(source, tmp_path / "hidden.attn", examples="text like '%gardener%'", no_text=True)
    assert told(open_)["condition"] == "text like '%gardener%'"
    assert b"gardener" not in everything(hidden)
    assert told(hidden) == {"text": True, "examples": 7}
    assert verify(hidden, deep=True) == []


# Fewer examples, layers and heads


def test_chosen_examples_answer_as_they_did_in_the_source(source: Path, tmp_path: Path) -> None:
    condition = "n_tokens > 8"
    made = less(source, tmp_path / "target.attn", examples=condition)
    assert verify(made, deep=True) == []
    before, after = answers(source, condition), answers(made)
    for name in [name for name, table in before.items() if "example" in table.schema.names]:
        assert before.pop(name).num_rows == after.pop(name).num_rows
    same(before, after)
    with attnstore.open(source) as store, attnstore.open(made) as fewer:
        names = (
            store.sql(f"select name from examples where {condition} order by example").to_arrow()["name"].to_pylist()
        )
        assert fewer.info.n_examples == fewer.info.corpus["examples"] == len(names) < store.info.n_examples
        found = fewer.sql("select example, name from examples order by example").to_arrow().to_pylist()
        assert [row["name"] for row in found] == names
        assert [row["example"] for row in found] == list(range(len(names)))
        for name in names:
            one, other = store.attention(name).weights, fewer.attention(name).weights
            assert np.array_equal(one, other)
    assert told(made) == {"examples": store.info.n_examples - len(names), "condition": condition}


def test_examples_can_be_given_by_number_and_from_an_opened_store(source: Path, tmp_path: Path) -> None:
    with attnstore.open(source) as store:
        made = less(store, tmp_path / "target.attn", examples=[5, 1])
        assert store.ask("heads/entropy").to_arrow().num_rows  # it stays open
    assert column(made, "examples", "name") == ["s1", "s5"]
    with pytest.raises(BadInput, match="numbers from 0 to 8"):
        less(source, tmp_path / "other.attn", examples=[9])


def test_chosen_layers_and_heads_keep_their_maps_and_all_facts(source: Path, tmp_path: Path) -> None:
    made = less(source, tmp_path / "target.attn", layers=[1], heads=[2, 0])
    assert verify(made, deep=True) == []
    assert told(made) == {"layers": [0], "heads": [1]}
    with attnstore.open(source) as before, attnstore.open(made) as after:
        assert (after.info.kept.layers, after.info.kept.heads) == ((1,), (0, 2))
        assert np.array_equal(
            before.attention(3, layer=1, head=[0, 2]).weights, after.attention(3, layer=1, head=[0, 2]).weights
        )
        with pytest.raises(NotStored):
            after.attention(3, layer=0)
        same({"": before.ask("heads/entropy").to_arrow()}, {"": after.ask("heads/entropy").to_arrow()})


def test_facts_alone_have_no_maps(source: Path, tmp_path: Path) -> None:
    made = less(source, tmp_path / "target.attn", facts_only=True, level="word")
    assert verify(made, deep=True) == []
    assert not list(made.rglob("maps.zarr"))
    assert not list(made.rglob("token_facts.parquet"))
    with attnstore.open(source) as before, attnstore.open(made) as after:
        assert after.info.kept.maps == "none"
        assert after.info.facts["tables"] == ["head_facts", "word_facts"]
        for question in ("heads/entropy", "relations/accuracy"):
            same({"": before.ask(question).to_arrow()}, {"": after.ask(question).to_arrow()})
    assert told(made) == {"maps": True, "level": "word"}


def test_the_largest_weights_of_chosen_examples_are_moved(tmp_path: Path) -> None:
    made = maker(tmp_path)("source.attn", keep__maps="topk:3", keep__precision="compact")
    fewer = less(made, tmp_path / "target.attn", examples="example in (1, 2, 5)", layers=[0])
    assert verify(fewer, deep=True) == []
    with attnstore.open(made) as before, attnstore.open(fewer) as after:
        cells = "select head, query, key, weight from attention where example = {} and layer = 0 order by all"
        one, other = before.sql(cells.format(5)).to_arrow(), after.sql(cells.format(2)).to_arrow()
        assert one.num_rows
        assert one == other
    bare = less(made, tmp_path / "bare.attn", facts_only=True)
    assert verify(bare, deep=True) == []
    assert not list(bare.rglob("kept_facts.parquet"))


@pytest.mark.parametrize(
    ("wish", "what"),
    [
        ({"examples": "n_tokens > 999"}, "no example for which"),
        ({"examples": "1=1) or (1=1"}, "condition in SQL"),
        ({"examples": []}, "no example in the list"),
        ({"layers": [2]}, "layers="),
        ({"heads": []}, "heads="),
        ({"level": "letter"}, "level="),
    ],
)
def test_a_choice_of_nothing_is_refused(source: Path, tmp_path: Path, wish: dict[str, object], what: str) -> None:
    with pytest.raises(BadInput, match=what):
        less(source, tmp_path / "target.attn", **wish)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []
