"""Whatever is wrong ends in one typed error that says what, where and what to do; what was stored stays."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import (
    BertConfig,
    BertModel,
    FNetConfig,
    FNetModel,
    LongformerConfig,
    LongformerModel,
    PreTrainedTokenizerFast,
)
from transformers.utils import logging

import attnstore
from attnstore.errors import (
    AttnStoreError,
    BadInput,
    NotCaptured,
)
from attnstore.format.commit import published
from attnstore.format.verify import verify
from attnstore.job import plan as plan_module
from attnstore.job.recipe import Recipe
from attnstore.job.run import estimate, ingest
from tests.conftest import arrays_recipe, write_arrays

WORDS = ["the", "cat", "sat", "on", "a", "mat", "dog", "barked", "."]
SIZES = {"vocab_size": 200, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
SIZES |= {"intermediate_size": 32, "max_position_embeddings": 24}
GOOD = "1\tthe\t_\tDET\t_\t_\t2\tdet\t_\t_\n2\tcat\t_\tNOUN\t_\t_\t0\troot\t_\t_\n\n"


def tokenizer() -> PreTrainedTokenizerFast:
    """A word-piece tokenizer with every printable letter."""
    letters = [chr(code) for code in range(33, 127)]
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS, *letters, *(f"##{letter}" for letter in letters[65:91])]
    ids = {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}
    inner = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    inner.normalizer, inner.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    specials = [("[CLS]", ids["[CLS]"]), ("[SEP]", ids["[SEP]"])]
    inner.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", specials)
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    return PreTrainedTokenizerFast(tokenizer_object=inner, **names)


def saved(model: Any, folder: Path) -> Path:
    logging.disable_progress_bar()
    model.save_pretrained(folder)
    logging.enable_progress_bar()
    tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a tiny random BERT that takes 24 tokens."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield saved(BertModel(BertConfig(**SIZES)), tmp_path_factory.mktemp("bert"))
    torch.set_num_threads(threads)


def recipe(folder: Path, model: Path | str, kind: str, path: Any, **keys: Any) -> Recipe:
    value = {"corpus": {"kind": kind, "path": path}, "model": {"name": str(model)}}
    overrides = {key.replace("__", "."): item for key, item in keys.items()}
    return Recipe.build(value, overrides, folder=folder)


def content(store: Path) -> dict[str, str]:
    """sha256 of every file under a folder."""
    files = (path for path in store.rglob("*") if path.is_file())
    return {path.relative_to(store).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture(scope="module")
def finished(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished store and, beside it, the corpus it was made of."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "good.conllu").write_text(GOOD)
    ingest(recipe(folder, model, "conllu", "good.conllu", words__source="gold"), folder / "s.attn").close()
    return folder / "s.attn"


@pytest.fixture
def standing(finished: Path, tmp_path: Path) -> Path:
    """A copy of it, into which something bad is about to go."""
    shutil.copy(finished.parent / "good.conllu", tmp_path)
    return Path(shutil.copytree(finished, tmp_path / "s.attn"))


def refused(standing: Path, wrong: Recipe, kind: type[AttnStoreError], *told: str) -> AttnStoreError:
    """Ingesting raises exactly this kind of error, with all of that in its message; the store stays as it was."""
    before = content(standing)
    with pytest.raises(kind) as caught:
        ingest(wrong, standing).close()
    error = caught.value
    assert type(error) is kind
    for part in told:
        assert part in str(error), f"{part!r} is not in: {error}"
    assert error.doing and error.found  # noqa: PT018
    assert error.expected or error.remedy, f"{error} does not say what to do"
    assert content(standing) == before
    assert verify(standing, deep=True) == []
    # Into a new folder nothing is written either.
    fresh = standing.parent / "fresh.attn"
    with pytest.raises(kind):
        ingest(wrong, fresh)
    assert not fresh.exists()
    return error


def conllu(*rows: str) -> bytes:
    """Lines of a sentence; each row is FORM HEAD."""
    lines = []
    for number, row in enumerate(rows, start=1):
        form, head = row.split(" ")
        lines.append(f"{number}\t{form}\t_\t_\t_\t_\t{head}\tdep\t_\t_")
    return ("\n".join(lines) + "\n\n").encode()


FILES: dict[str, tuple[str, bytes | None, list[str]]] = {
    # what is wrong: the kind of corpus, what the file holds (None: there is no file), what the message must say
    "missing": ("lines", None, ["bad.txt", "no such file", "corpus.path"]),
    "empty": ("lines", b"", ["bad.txt", "the file is empty"]),
    "blank lines": ("lines", b"\n  \n\n", ["bad.txt", "nothing to read"]),
    "not utf-8": ("lines", b"the cat\n\xff\xfe\n", ["bad.txt, line 2", "byte 1", "UTF-8"]),
    "utf-16": ("lines", "the cat\n".encode("utf-16"), ["bad.txt, line 1", "UTF-16", "Convert"]),
    "a conllu line of nine columns": ("conllu", b"1\tthe\n", ["bad.conllu, line 1"]),
    "a conllu line in the middle": ("conllu", GOOD.encode() * 2 + b"nonsense\n", ["bad.conllu, line 7"]),
    "word numbers that jump": (
        "conllu",
        GOOD.encode() + b"1\ta\t_\t_\t_\t_\t0\troot\t_\t_\n3\tb",
        ["bad.conllu, line 5"],
    ),
    "governor out of range": ("conllu", conllu("the 0", "cat 7"), ["bad.conllu, line 2", "governor 7"]),
    "governor of its own": ("conllu", conllu("the 0", "cat 2"), ["bad.conllu, line 2", "its own governor"]),
    "cyclic governors": ("conllu", conllu("the 2", "cat 3", "sat 1", "a 0"), ["bad.conllu, line 1", "in a circle"]),
    "governor that is no number": ("conllu", conllu("the x"), ["bad.conllu, line 1"]),
    "broken json": ("jsonl", b'{"text": "a cat"}\n{"text": "a', ["bad.jsonl, line 2", "column"]),
    "json without a text": ("jsonl", b'{"txt": "a cat"}\n', ["bad.jsonl, line 1", "no 'text'", "Did you mean 'txt'?"]),
    "json that is a list": ("jsonl", b'["a cat"]\n', ["bad.jsonl, line 1", "one JSON object a line"]),
    "half a surrogate pair": ("jsonl", b'{"text": "a \\ud800 cat"}\n', ["bad.jsonl, line 1", "surrogate"]),
    "a table without its column": ("table", b"sentence,label\na cat,1\n", ["bad.csv", "text", "columns.text"]),
    "a row of another width": ("table", b"text,label\na cat,1,2\n", ["bad.csv, line 2", "3 fields", "2 fields"]),
    "a parquet file that is none": ("parquet", b"PAR1 not really", ["bad.parquet", "Parquet"]),
}
ENDINGS = {"lines": "txt", "conllu": "conllu", "jsonl": "jsonl", "table": "csv", "parquet": "parquet"}


@pytest.mark.parametrize("what", FILES)
def test_a_file_that_cannot_be_read_is_named_with_its_line(standing: Path, model: Path, what: str) -> None:
    kind, data, told = FILES[what]
    path = standing.parent / f"bad.{ENDINGS[kind]}"
    if data is not None:
        path.write_bytes(data)
    kind = "table" if kind == "parquet" else kind
    source = "gold" if kind == "conllu" else "none"
    refused(standing, recipe(path.parent, model, kind, path.name, words__source=source), BadInput, *told)


def test_a_bad_file_beside_good_ones_stops_all_of_it(standing: Path, model: Path) -> None:
    (standing.parent / "z.conllu").write_bytes(conllu("the 9"))
    wrong = recipe(standing.parent, model, "conllu", "*.conllu", words__source="gold")
    refused(standing, wrong, BadInput, "z.conllu, line 1", "governor 9")


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("none/*.txt", ["no file matches none/*.txt", "--set corpus.path="]),
        ([".", "good.conllu"], ["it is a folder"]),
        (["good.conllu", "./good.conllu"], ["twice"]),
    ],
    ids=["no match", "a folder", "twice"],
)
def test_a_path_that_names_no_corpus_is_refused(standing: Path, model: Path, path: Any, told: list[str]) -> None:
    refused(standing, recipe(standing.parent, model, "conllu", path), BadInput, *told)


def test_gold_words_need_a_corpus_that_has_some(standing: Path, model: Path) -> None:
    (standing.parent / "plain.txt").write_text("the cat sat .\n")
    wrong = recipe(standing.parent, model, "lines", "plain.txt", words__source="gold")
    refused(standing, wrong, BadInput, "plain.txt:1", "no words", 'words.source = "none"', "spacy:")


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"encode__max_length": 25}, ["encode.max_length", "25", "24 at most"]),
        ({"encode__max_length": 2}, ["max_length"]),
        ({"keep__layers": [0, 2]}, ["keep.layers", "[2]", "0 to 1"]),
        ({"keep__heads": [-1]}, ["keep.heads", "[-1]", "0 to 1"]),
        ({"words__source": "spacy:no_such_pipeline"}, ["no_such_pipeline", "nstall"]),
        ({"corpus__columns": {"text": "a"}}, ["columns.text"]),
        ({"model__revision": "main"}, ["revision"]),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_key_that_does_not_fit_the_model_or_corpus_is_refused(
    standing: Path, model: Path, keys: dict[str, Any], told: list[str]
) -> None:
    wrong = recipe(standing.parent, model, "conllu", "good.conllu", **{"words__source": "gold", **keys})
    refused(standing, wrong, BadInput, *told)


def without(folder: Path, model: Path, *patterns: str) -> Path:
    """A copy of the model without some of its files."""
    copy = Path(shutil.copytree(model, folder / "model"))
    gone = [path for pattern in patterns for path in copy.glob(pattern)]
    assert gone
    for path in gone:
        path.unlink()
    return copy


@pytest.mark.parametrize(
    ("patterns", "told"),
    [
        (["tokenizer*", "vocab*"], ["there is no tokenizer", "tokenizer.json", "save model and tokenizer there"]),
        (["*.safetensors"], ["there are no weights", "model.safetensors", "The folder holds config.json"]),
        (["config.json"], ["config.json", "save_pretrained"]),
        (["*"], ["config.json"]),
    ],
    ids=["tokenizer", "weights", "configuration", "everything"],
)
def test_a_model_folder_that_lacks_something_says_what(
    standing: Path, model: Path, patterns: list[str], told: list[str]
) -> None:
    broken = without(standing.parent, model, *patterns)
    wrong = recipe(standing.parent, broken, "conllu", "good.conllu")
    refused(standing, wrong, BadInput, str(broken), *told)


@pytest.mark.parametrize("name", ["no/folder/here", "package:no_such_package/model", ""])
def test_a_model_that_is_not_there_is_refused(standing: Path, name: str) -> None:
    refused(standing, recipe(standing.parent, name, "conllu", "good.conllu"), BadInput, repr(name))


def test_a_model_without_attention_is_refused(standing: Path) -> None:
    config = FNetConfig(vocab_size=200, hidden_size=16, num_hidden_layers=2, intermediate_size=32)
    fnet = saved(FNetModel(config), standing.parent / "fnet")
    refused(standing, recipe(standing.parent, fnet, "conllu", "good.conllu"), NotCaptured, "fnet", "attention")


def test_a_model_whose_maps_are_no_maps_is_refused(standing: Path) -> None:
    longformer = saved(LongformerModel(LongformerConfig(**SIZES, attention_window=4)), standing.parent / "longformer")
    wrong = recipe(standing.parent, longformer, "conllu", "good.conllu")
    refused(standing, wrong, NotCaptured, "LongformerModel", "sliding window", "Use a model with full attention")


def test_a_model_that_gives_no_map_leaves_no_store_and_another_may_use_the_folder(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As for a model whose attention no road reaches: it is known only once the weights are loaded.
    (tmp_path / "a.txt").write_text("the cat sat .\n")
    wanted = recipe(tmp_path, model, "lines", "a.txt")
    with monkeypatch.context() as patch:
        patch.setattr("attnstore.capture.roads.ROADS", ())
        with pytest.raises(NotCaptured, match="none of the 0 roads gives them"):
            ingest(wanted, tmp_path / "s.attn")
    assert not (tmp_path / "s.attn").exists()
    with monkeypatch.context() as patch:
        patch.setattr("attnstore.capture.check.TOLERANCE", -1.0)
        with pytest.raises(NotCaptured):
            ingest(wanted, tmp_path / "s.attn")
    other = recipe(tmp_path, model, "lines", "a.txt", keep__precision="exact")
    ingest(other, tmp_path / "s.attn").close()
    assert verify(tmp_path / "s.attn", deep=True) == []


# --- what is no error, and recorded


def test_a_word_without_a_token_is_counted(tmp_path: Path, model: Path) -> None:
    # A zero-width space is a word of this treebank, and nothing to the tokenizer.
    text = GOOD.replace("2\tcat", "2\t\u200b")
    (tmp_path / "a.conllu").write_text(text, encoding="utf-8")
    with ingest(recipe(tmp_path, model, "conllu", "a.conllu", words__source="gold"), tmp_path / "s") as store:
        words = {row["form"]: (row["n_tokens"], row["aligned"]) for row in store.sql("select * from words")}
        assert words == {"the": (1, "exact"), "\u200b": (0, "none")}
        counted = {(row["item"], row["state"]): row["n"] for row in store.ask("audit/coverage")}
        assert counted["word", "none"] == 1
    assert verify(tmp_path / "s", deep=True) == []


LONG = " ".join(["the cat sat on a mat ."] * 5)  # 35 words, and 22 tokens fit between [CLS] and [SEP]


@pytest.mark.parametrize(
    ("way", "cuts", "skipped"),
    [
        ("window", ["whole", "window", "window"], []),
        ("truncate", ["whole", "truncated"], []),
        ("skip", ["whole"], [("a:2", "37 tokens, more than 24", "a.txt:2")]),
    ],
)
def test_a_text_that_is_too_long_is_recorded_as_what_became_of_it(
    tmp_path: Path, model: Path, way: str, cuts: list[str], skipped: list[tuple[str, str, str]]
) -> None:
    (tmp_path / "a.txt").write_text(f"the cat sat .\n{LONG}\n")
    wanted = recipe(tmp_path, model, "lines", "a.txt", encode__long=way)
    assert estimate(wanted).skipped == len(skipped)
    with ingest(wanted, tmp_path / "s") as store:
        rows = list(store.sql("select * from examples order by example"))
        assert [row["cut"] for row in rows] == cuts
        assert all(row["n_tokens"] <= 24 for row in rows)
        if way == "window":
            # Nothing of the text is lost between the windows.
            assert "".join("".join(row["text"].split()) for row in rows[1:]) == "".join(LONG.split())
        found = [(row["name"], row["reason"], row["origin"]) for row in store.sql("select * from skipped")]
        assert found == skipped
        states = {(row["item"], row["state"]): row["n"] for row in store.ask("audit/coverage")}
        assert states.get(("skipped", "37 tokens, more than 24"), 0) == len(skipped)
    assert verify(tmp_path / "s", deep=True) == []


def test_a_corpus_of_which_nothing_is_left_is_refused(standing: Path, model: Path) -> None:
    (standing.parent / "a.txt").write_text(f"{LONG}\n")
    wrong = recipe(standing.parent, model, "lines", "a.txt", encode__long="skip")
    refused(standing, wrong, BadInput, "no usable example", "37 tokens, more than 24")


ODD = ["a\0b", "\u200b", "  ", "a\u2028b", "\u65e5\u672c", "\U0001f600", "[SEP] [CLS] the cat", "\x1b[31mred", "a\rb"]
ODD += ["\u0130", "x" * 3000, "\ufeff", "\x0c", "'; drop table words; --", "%s {0}", "the\u0301 cat"]


def test_odd_texts_are_stored_as_they_are_or_skipped_with_a_reason(tmp_path: Path, model: Path) -> None:
    (tmp_path / "a.jsonl").write_text("\n".join(json.dumps({"text": text}) for text in ODD) + "\n")
    with ingest(recipe(tmp_path, model, "jsonl", "a.jsonl"), tmp_path / "s") as store:
        stored = {row["origin"]: row["text"] for row in store.sql("select origin, text from examples")}
        skipped = {row["origin"]: row["reason"] for row in store.sql("select * from skipped")}
        for line, text in enumerate(ODD, start=1):
            where = f"a.jsonl:{line}"
            assert stored.get(where) == text or skipped[where] in ("no token in its text", "its text is empty"), text
        assert len(stored) + len(skipped) == len(ODD)
        # "[SEP]" in a text is text.
        (number,) = (n for n, text in enumerate(stored.values()) if text.startswith("[SEP]"))
        tokens = store.sql("select special from tokens where example = $n order by token", n=number)
        assert [row["special"] for row in tokens if row["special"]] == ["cls", "sep"]
    assert verify(tmp_path / "s", deep=True) == []


# --- folders and disks


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("file/s.attn", ["file/s.attn", "Not a directory"]),
        ("file", ["a file of that name"]),
        ("x" * 300, ["too long"]),
    ],
    ids=["under a file", "a file", "a long name"],
)
def test_a_place_where_no_store_can_be_is_refused(
    tmp_path: Path, arrays_corpus: Path, place: str, told: list[str]
) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(BadInput) as caught:
        ingest(arrays_recipe(arrays_corpus), tmp_path / place)
    assert all(part in str(caught.value) for part in told), caught.value
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_refused(tmp_path: Path, arrays_corpus: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    with pytest.raises(BadInput, match=r"closed.*Permission denied.*a folder that can be written"):
        ingest(arrays_recipe(arrays_corpus), tmp_path / "closed" / "s.attn")


SMALL_DISK = """
import sys
from pathlib import Path
from attnstore.errors import AttnStoreError
from attnstore.format.commit import published
from attnstore.format.verify import verify
from attnstore.job import plan, run
from tests.conftest import arrays_recipe
plan.SEGMENT_TOKENS, run.SPACE_LEFT, run.SNAPSHOT_SECONDS = 60, -(10**12), 0.0
store, recipe = Path(sys.argv[1]) / "s.attn", arrays_recipe(Path(sys.argv[2]))
try:
    run.ingest(recipe, store)
except AttnStoreError as error:
    print(type(error).__name__, error, sep="|", end="|")
there = published(store, "segments")
print(len(there), verify(store, deep=True) if there else [], sorted(p.name for p in store.rglob(".staging-*")), sep="|")
if there:
    for path in Path(sys.argv[1]).glob("ballast*"):
        path.unlink()
    run.ingest(recipe, store).close()
    print(len(published(store, "segments")), verify(store, deep=True), sep="|")
"""


def on_small_disk(options: str, place: Path, corpus: Path, before: str = "true") -> list[list[str]]:
    """What the script prints with `place` on a disk of its own, which vanishes with the process."""
    mount = f'mount -t tmpfs -o {options} tmpfs "$0" && {before} && exec "$@"'
    command = [
        "unshare",
        "-rm",
        "sh",
        "-c",
        mount,
        str(place),
        sys.executable,
        "-c",
        SMALL_DISK,
        str(place),
        str(corpus),
    ]
    root = str(Path(__file__).parents[1])
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, cwd=root)
    assert result.returncode == 0, result.stderr
    return [line.split("|") for line in result.stdout.splitlines()]


@pytest.fixture(scope="module")
def may_mount(tmp_path_factory: pytest.TempPathFactory) -> None:
    place = tmp_path_factory.mktemp("mount")
    command = ["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", str(place)]
    if not shutil.which("unshare") or subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting a small disk is not allowed here")


def test_a_disk_that_fills_up_keeps_the_finished_segments_and_the_same_command_goes_on(
    tmp_path: Path, may_mount: None
) -> None:
    sentences = ["the old clock stopped and nobody in the house had heard it for a whole week ."] * 20
    corpus = write_arrays(tmp_path / "c", sentences, layers=8, heads=8)
    (tmp_path / "disk").mkdir()
    ballast = f"head -c 1300000 /dev/zero > '{tmp_path}/disk/ballast'"
    (kind, message, n, broken, staged), (total, broken_later) = on_small_disk(
        "size=2m", tmp_path / "disk", corpus, ballast
    )
    assert kind == "NoSpace"
    assert "No space left on device" in message
    assert "run the same command again" in message
    assert f"{n} finished segments are kept" in message
    assert 0 < int(n) < int(total)
    assert broken == broken_later == "[]"
    assert staged == "[]"  # what was begun is cleared away


def test_a_disk_for_reading_only_is_refused(tmp_path: Path, arrays_corpus: Path, may_mount: None) -> None:
    (tmp_path / "disk").mkdir()
    ((kind, message, n, _, _),) = on_small_disk("size=2m,ro", tmp_path / "disk", arrays_corpus)
    assert (kind, n) == ("BadInput", "0")
    assert "Read-only file system" in message
    assert "a folder that can be written" in message


# --- a corpus that moves


def test_a_corpus_that_changes_while_it_is_read_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_module, "SEGMENT_TOKENS", 10)
    corpus = write_arrays(tmp_path / "c", ["rain fell", "he left it", "she came too"])
    text = corpus.read_text()
    real = attnstore.job.run.write_once

    def changed(*args: Any) -> bool:
        # After the plan: as many examples and tokens as before, with another word in the last.
        corpus.write_text(text.replace("too", "two"))
        return real(*args)

    monkeypatch.setattr("attnstore.job.run.write_once", changed)
    with pytest.raises(BadInput, match=r"reading the corpus again: examples 2 to 2 are not what they were"):
        ingest(arrays_recipe(corpus), tmp_path / "s")
    assert published(tmp_path / "s", "segments") == ["000000"]
    corpus.write_text(text)
    monkeypatch.setattr("attnstore.job.run.write_once", real)
    with ingest(arrays_recipe(corpus), tmp_path / "s") as store:
        assert [row["text"] for row in store.sql("select text from examples order by example")][2] == "she came too"


@pytest.mark.parametrize("key", ["words", "mentions", "links", "split", "document"])
def test_a_corrected_annotation_is_another_corpus(tmp_path: Path, key: str) -> None:
    corpus = write_arrays(tmp_path / "c", ["rain fell"])
    ingest(arrays_recipe(corpus), tmp_path / "s").close()
    line = json.loads(corpus.read_text())
    spans = {"source_start_word": 0, "source_end_word": 1, "target_start_word": 1, "target_end_word": 2}
    line[key] = {
        "words": [{"form": "rain", "governor": 1, "deprel": "nsubj"}, {"form": "fell", "deprel": "root"}],
        "mentions": [{"cluster": "x", "start_word": 0, "end_word": 1}],
        "links": [{"relation": "r", **spans}],
        "split": "dev",
        "document": "d",
    }[key]
    corpus.write_text(json.dumps(line))
    with pytest.raises(BadInput, match=r"by another recipe, corpus or model: corpus\.fingerprint"):
        ingest(arrays_recipe(corpus), tmp_path / "s")


def test_numbers_of_maps_that_changed_between_two_runs_are_stored_as_they_are(tmp_path: Path) -> None:
    """A finished store is not looked at again: the maps of a corpus are not part of its fingerprint."""
    corpus = write_arrays(tmp_path / "c", ["rain fell"])
    ingest(arrays_recipe(corpus), tmp_path / "s").close()
    before = content(tmp_path / "s")
    np.savez(corpus.parent / "maps.npz", **{"s0/encoder": np.full((2, 3, 4, 4), 0.25, np.float32)})
    ingest(arrays_recipe(corpus), tmp_path / "s").close()
    after = content(tmp_path / "s")
    assert {name: after[name] for name in after if name != "README.md"} == {
        name: before[name] for name in before if name != "README.md"
    }
