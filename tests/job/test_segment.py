"""A segment is filled in batches within both limits, by two threads that hold little and hide no error."""

import errno
import hashlib
import json
import threading
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attnstore.errors import BadInput
from attnstore.format.verify import verify
from attnstore.job import build as build_module
from attnstore.job import run as run_module
from attnstore.job import segment as segment_module
from attnstore.job import writer as writer_module
from attnstore.job.keep import KeepMaps
from attnstore.job.rows import Placed
from attnstore.job.run import ingest
from attnstore.job.segment import BATCH_MAP_BYTES, BATCH_TOKENS, batches
from attnstore.job.source import Prepared
from attnstore.text.encoded import Encoded
from attnstore.text.example import Example
from tests.conftest import SENTENCES, arrays_recipe, write_arrays


def encoded(length: int) -> Encoded:
    return Encoded((0,) * length, ("x",) * length, (None,) * length, (0,) * length, (0,) * length, (None,) * length)


def placed(number: int, source: int, target: int | None) -> Placed:
    """An example of that many tokens; nothing else of it matters here."""
    prepared = Prepared(Example("x", "x"), encoded(source), None if target is None else encoded(target))
    return Placed(number, prepared, None, None, {})  # type: ignore[arg-type]


def cost(batch: list[Placed], heads: int) -> tuple[int, int]:
    """Padded tokens, and bytes of one layer's padded maps in float32."""
    source = max(len(item.prepared.source) for item in batch)
    target = max(len(item.prepared.target or ()) for item in batch)  # type: ignore[arg-type]
    return len(batch) * (source + target), len(batch) * max(source, target) ** 2 * heads * 4


LENGTHS = st.integers(1, 40) | st.integers(1, 700)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(LENGTHS, st.none() | LENGTHS), max_size=60), st.sampled_from([1, 12, 64]))
def test_batches_keep_both_limits_and_are_as_large_as_they_may(sizes: list[tuple[int, int | None]], heads: int) -> None:
    items = [placed(number, *size) for number, size in enumerate(sizes)]
    items.sort(key=lambda item: item.prepared.length)
    cut = list(batches(items, heads))
    assert [item for batch in cut for item in batch] == items
    for batch, following in zip(cut, [*cut[1:], []][: len(cut)], strict=True):
        tokens, size = cost(batch, heads)
        assert len(batch) == 1 or (tokens <= BATCH_TOKENS and size <= BATCH_MAP_BYTES)
        if following:
            tokens, size = cost([*batch, following[0]], heads)
            assert tokens > BATCH_TOKENS or size > BATCH_MAP_BYTES


def test_batches_by_hand() -> None:
    # 12 heads: 16 MiB of maps are 349,525 cells, so 5 examples of 256 tokens; 2,048 tokens would be 8.
    assert [len(batch) for batch in batches([placed(n, 256, None) for n in range(12)], 12)] == [5, 5, 2]
    # 1 head: 8 examples of 256 tokens, for their tokens.
    assert [len(batch) for batch in batches([placed(n, 256, None) for n in range(12)], 1)] == [8, 4]
    # An example that is too long by itself is a batch by itself.
    assert [len(batch) for batch in batches([placed(0, 10, None), placed(1, 3000, None)], 12)] == [1, 1]
    assert list(batches([], 12)) == []


def writers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "attnstore-writer"]


def digests(store: Path) -> dict[str, str]:
    """sha256 of every file of the segments."""
    files = [path for path in (store / "segments").rglob("*") if path.is_file()]
    return {path.relative_to(store).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write_arrays(tmp_path / "c", SENTENCES[:5])


@pytest.mark.parametrize("waiting", [0, 1, 4_000, 2**20])
def test_what_may_wait_changes_no_byte(
    corpus: Path, tmp_path: Path, waiting: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest(arrays_recipe(corpus), tmp_path / "usual.attn").close()
    # 0: every layer is taken on the model's own thread. 4,000 bytes: the short batches queue, the long ones do not.
    monkeypatch.setattr(writer_module, "WAITING_BYTES", waiting)
    ingest(arrays_recipe(corpus), tmp_path / "other.attn").close()
    assert digests(tmp_path / "other.attn") == digests(tmp_path / "usual.attn")


def test_the_cut_into_batches_changes_nothing_but_the_grouping(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest(arrays_recipe(corpus), tmp_path / "usual.attn").close()
    monkeypatch.setattr(segment_module, "BATCH_TOKENS", 1)  # one example a batch: no padding at all
    ingest(arrays_recipe(corpus), tmp_path / "other.attn").close()
    usual, other = digests(tmp_path / "usual.attn"), digests(tmp_path / "other.attn")
    assert {name for name in usual if usual[name] != other[name]} == set()


class Broken(Exception):
    """What goes wrong in the middle."""


@pytest.mark.parametrize("waiting", [0, 2**25], ids=["on the model's thread", "on the writing thread"])
@pytest.mark.parametrize("after", [0, 1])
def test_an_error_of_the_writer_surfaces_and_leaves_no_thread(
    corpus: Path, tmp_path: Path, after: int, waiting: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "WAITING_BYTES", waiting)
    real, calls = KeepMaps.append, [0]

    def append(*args: Any) -> Any:
        calls[0] += 1
        if calls[0] > after:
            raise Broken(f"at {calls[0]}")
        return real(*args)

    monkeypatch.setattr(KeepMaps, "append", append)
    with pytest.raises(Broken, match=f"at {after + 1}$"):  # the first one, not one that follows from it
        ingest(arrays_recipe(corpus), tmp_path / "s.attn")
    assert writers() == []
    assert [path.name for path in (tmp_path / "s.attn/segments").iterdir()] == []
    monkeypatch.setattr(KeepMaps, "append", real)
    ingest(arrays_recipe(corpus), tmp_path / "s.attn").close()
    assert verify(tmp_path / "s.attn", deep=True) == []


@pytest.mark.parametrize("error", [Broken("the model"), KeyboardInterrupt()])
def test_an_error_of_the_model_surfaces_and_leaves_no_thread(
    corpus: Path, tmp_path: Path, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    from attnstore.job.premade import ArraysSource

    def capture(self: ArraysSource, batch: Any, receive: Any) -> None:
        receive("encoder", 0, np.full((len(batch), 3, *[max(len(b.source) for b in batch)] * 2), 0.5, np.float32))
        raise error

    monkeypatch.setattr(ArraysSource, "capture", capture)
    with pytest.raises(type(error)):
        ingest(arrays_recipe(corpus), tmp_path / "s.attn")
    assert writers() == []
    assert list((tmp_path / "s.attn/segments").iterdir()) == []


def test_a_full_disk_while_cleaning_up_does_not_hide_the_error(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: object) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(KeepMaps, "append", lambda *args: (_ for _ in ()).throw(Broken("first")))
    monkeypatch.setattr("attnstore.format.arrays.MapsWriter.abandon", full)
    with pytest.raises(Broken, match="first"):
        ingest(arrays_recipe(corpus), tmp_path / "s.attn")


def test_a_weight_that_cannot_be_is_named_with_its_place(tmp_path: Path) -> None:
    # The sum of the row is 1 all the same.
    bad = np.full((2, 1, 2, 2), 0.5, np.float32)
    bad[1, 0, 1] = [1.25, -0.25]
    np.savez(tmp_path / "m.npz", encoder=bad)
    (tmp_path / "c.jsonl").write_text(json.dumps({"name": "n", "text": "a b", "tokens": ["a", "b"], "maps": "m.npz"}))
    with pytest.raises(BadInput, match=r"storing encoder layer 1 of n: weights from -0\.25 to 1\.25; expected numbers"):
        ingest(arrays_recipe(tmp_path / "c.jsonl"), tmp_path / "s.attn")


@pytest.fixture
def long_corpus(tmp_path: Path) -> tuple[Path, int]:
    """One example of 700 tokens with 5 layers of 12 heads, and the bytes of one layer's map in float32."""
    tokens, heads, layers = 700, 12, 5
    rng = np.random.default_rng(0)
    folder = tmp_path / "long"
    folder.mkdir()
    weights = rng.random((layers, heads, tokens, tokens), np.float32)
    weights /= weights.sum(axis=-1, keepdims=True)
    np.savez(folder / "m.npz", encoder=weights)
    words = [f"w{number}" for number in range(tokens)]
    line = {"text": " ".join(words), "tokens": words, "words": words, "maps": "m.npz"}
    (folder / "c.jsonl").write_text(json.dumps(line))
    return folder / "c.jsonl", weights[0].nbytes


@pytest.mark.slow
@pytest.mark.parametrize(
    "keys", [{}, {"keep__maps": "topk:16"}, {"keep__heads": [0, 2, 11]}], ids=["all", "topk", "heads"]
)
def test_a_long_example_is_written_in_the_memory_of_two_layers(
    long_corpus: tuple[Path, int], tmp_path: Path, keys: dict[str, Any]
) -> None:
    corpus, layer = long_corpus
    constant = 30 * 2**20  # open chunks (60 of 64 Ki cells in half precision), blocks of 2^20 cells being rounded
    recipe = arrays_recipe(corpus, **keys)
    tracemalloc.start()
    try:
        ingest(recipe, tmp_path / "s.attn").close()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2 * layer + constant, f"{peak / 2**20:.0f} MiB, a layer has {layer / 2**20:.0f} MiB"
    assert 2 * layer + constant < 5 * layer  # so that reading the file of maps as a whole would not pass
    assert verify(tmp_path / "s.attn") == []


def test_the_finished_segments_stay_when_a_later_one_fails(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attnstore.job.plan.SEGMENT_TOKENS", 15)
    monkeypatch.setattr(run_module, "SNAPSHOT_SECONDS", -1.0)
    real = build_module.fill

    def fails(staging: Path, segment: Any, *rest: Any) -> Any:
        if segment.number == 2:
            raise Broken("third")
        return real(staging, segment, *rest)

    monkeypatch.setattr(build_module, "fill", fails)
    with pytest.raises(Broken):
        ingest(arrays_recipe(corpus), tmp_path / "s.attn")
    before = digests(tmp_path / "s.attn")
    assert {name.split("/")[1] for name in before} == {"000000", "000001"}
    assert verify(tmp_path / "s.attn", deep=True) == []
    monkeypatch.setattr(build_module, "fill", real)
    ingest(arrays_recipe(corpus), tmp_path / "s.attn").close()
    after = digests(tmp_path / "s.attn")
    assert {name: after[name] for name in before} == before
    assert len({name.split("/")[1] for name in after}) > 2
