"""Files of a store deleted, cut, swapped, or put in each other's place: each is found, and nothing is read wrong."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import attnstore
from attnstore.errors import AttnStoreError, Damaged
from attnstore.format.verify import verify
from attnstore.share.tags import tag
from tests.forging import repin
from tests.survival.flipping import PIPELINES, Bench, Tally, answers, make, through

SEGMENT = "segments/000000"
SHARD = f"{SEGMENT}/maps.zarr/encoder/c/0/0/0"


@pytest.fixture(scope="module")
def bench(arrays_corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    bench = Bench(arrays_corpus, tmp_path_factory.mktemp("damage"))
    tag(bench.root("addition"), "paper")
    return bench


@pytest.fixture
def spoiling(bench: Bench) -> Iterator[Path]:
    """The store with an addition and a tag; whatever a test does to it is undone."""
    root = bench.root("addition")
    kept = root.with_suffix(".kept")
    shutil.copytree(root, kept, symlinks=True)
    yield root
    shutil.rmtree(root)
    kept.rename(root)


def delete(path: Path) -> None:
    path.unlink()


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def append(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\0")


def double(path: Path) -> None:
    shutil.copy(path, path.with_name(f"{path.stem} (copy){path.suffix}"))


def as_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def as_link(path: Path) -> None:
    moved = Path(shutil.move(path, path.parent.parent / f".staging-{path.name}"))
    path.symlink_to(moved)


def zeros(path: Path) -> None:
    path.write_bytes(b"\0" * path.stat().st_size)


FILES = (
    f"{SEGMENT}/examples.parquet",
    f"{SEGMENT}/token_facts.parquet",
    SHARD,
    f"{SEGMENT}/maps.zarr/encoder/zarr.json",
    f"{SEGMENT}/segment.json",
    "additions/{addition}/offset_facts.parquet",
    "additions/{addition}/addition.json",
    "snapshots/00000001.json",
    "store.json",
    "tags/paper.json",
)
HARMLESS = {(double, "store.json"), (delete, "snapshots/00000001.json")}
"""The root of a store holds cards and the like, and older snapshots may be collected."""


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", [delete, truncate, empty, append, double, as_folder, as_link, zeros])
def test_a_damaged_file_is_found_and_not_read(
    bench: Bench, spoiling: Path, damage: Callable[[Path], None], name: str
) -> None:
    addition = next(path.name for path in (spoiling / "additions").iterdir())
    damage(spoiling / name.format(addition=addition))
    tally = Tally()
    if (damage, name) == (delete, "tags/paper.json"):
        with pytest.raises(AttnStoreError, match="no tag"):
            verify(spoiling, tag="paper")
        return
    for pipeline in PIPELINES:
        bench.judge("addition", f"{damage.__name__} {name}", pipeline, tally, harmless=(damage, name) in HARMLESS)
    assert tally.wrong == []
    if name.startswith("tags") and damage is not double:
        with pytest.raises(AttnStoreError):
            attnstore.open(spoiling, tag="paper")


def swap(one: Path, other: Path) -> None:
    between = one.with_name(".staging-swap")
    one.rename(between)
    other.rename(one)
    between.rename(other)


def rules(root: Path) -> set[str]:
    return {finding.rule for finding in verify(root, deep=True)}


def test_two_swapped_shards_are_found(bench: Bench, spoiling: Path) -> None:
    swap(spoiling / SHARD, spoiling / SHARD.replace("c/0/", "c/1/"))
    assert rules(spoiling) & {"F4", "F5"}
    with pytest.raises(Damaged):
        answers(spoiling)


@pytest.fixture(params=[True, False], ids=["with checksums of indexes", "without"])
def alike(request: pytest.FixtureRequest, arrays_corpus: Path, tmp_path: Path) -> Path:
    """A store whose two shards have equal sizes, so that only their bytes tell one from the other."""
    root = make("standard", arrays_corpus, tmp_path / "alike.attn")
    shards = [root / SHARD, root / SHARD.replace("c/0/", "c/1/")]
    most = max(path.stat().st_size for path in shards)
    for path in shards:
        # What lies before the chunks belongs to none: the index says where they begin.
        sound, gap = path.read_bytes(), most + 64 - path.stat().st_size
        path.write_bytes(_shifted(sound, gap))
    repin(root, files=True)
    if not request.param:
        manifest = root / SEGMENT / "segment.json"
        value = json.loads(manifest.read_text())
        for file in value["files"]:
            file.pop("index_crc32c", None)
        manifest.write_text(json.dumps(value))
        repin(root)
    return root


def _shifted(shard: bytes, gap: int) -> bytes:
    import google_crc32c
    import numpy as np

    index = np.frombuffer(shard[-(3 * 16 + 4) : -4], "<u8").reshape(3, 2).copy()
    index[:, 0] += gap
    body = b"\0" * gap + shard[: -(3 * 16 + 4)]
    return body + index.tobytes() + google_crc32c.value(index.tobytes()).to_bytes(4, "little")


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_two_shards_of_equal_size_that_were_swapped_are_no_maps(alike: Path, pipeline: str) -> None:
    assert verify(alike, deep=True) == []
    with through(pipeline):
        answers(alike)
        swap(alike / SHARD, alike / SHARD.replace("c/0/", "c/1/"))
        with attnstore.open(alike) as store, pytest.raises(Damaged, match="crc32c"):
            store.attention("s3", layer=1, head=2, tokens=slice(1, 3))
    assert rules(alike) == {"F5"}
    repin(alike, files=True)  # now every hash is right
    assert {finding.rule for finding in verify(alike)} == set()
    assert rules(alike) == {"F15"}


def test_two_swapped_segments_are_found(arrays_corpus: Path, tmp_path: Path) -> None:
    root = make("segments", arrays_corpus, tmp_path / "cut.attn")
    swap(root / "segments/000000", root / "segments/000001")
    assert rules(root) == {"F3"}
    with pytest.raises(Damaged):
        answers(root)
    swap(root / "segments/000000", root / "segments/000001")
    swap(root / "segments/000000/words.parquet", root / "segments/000001/words.parquet")
    assert rules(root) & {"F4", "F5"}
    with pytest.raises(Damaged):
        answers(root)
    repin(root, files=True)
    assert rules(root) & {"F7", "F16"}  # other rows than the manifest says, or rows of other examples


def test_the_manifest_of_an_older_segment_is_found(bench: Bench, spoiling: Path) -> None:
    shutil.copy(bench.root("exact") / SEGMENT / "segment.json", spoiling / SEGMENT / "segment.json")
    assert rules(spoiling) == {"F3"}
    with pytest.raises(Damaged, match="sha256"):
        answers(spoiling)


def test_store_json_of_another_time_is_found(bench: Bench, spoiling: Path) -> None:
    path = spoiling / "store.json"
    path.write_text(path.read_text().replace('"precision": "standard"', '"precision": "exact"'))
    assert "F13" in rules(spoiling)
    with pytest.raises(Damaged, match="sha256"):
        attnstore.open(spoiling)


def test_rows_and_maps_of_another_example_are_found(spoiling: Path) -> None:
    """Every hash is made right: only what the numbers mean is wrong."""
    path = spoiling / SEGMENT / "examples.parquet"
    table = pq.read_table(path)
    first = table["cell_encoder"].to_pylist()
    sizes = table["n_tokens"].to_pylist()
    one, other = next((i, j) for j, size in enumerate(sizes) for i in range(j) if sizes[i] == size)
    first[one], first[other] = first[other], first[one]
    index = table.schema.get_field_index("cell_encoder")
    pq.write_table(table.set_column(index, table.schema.field(index), pa.array(first, pa.int64())), path)
    repin(spoiling, files=True)
    assert {finding.rule for finding in verify(spoiling)} == set()
    assert rules(spoiling) == {"F15"}


def test_a_word_of_another_example_is_found(spoiling: Path) -> None:
    path = spoiling / SEGMENT / "words.parquet"
    table = pq.read_table(path)
    numbers = table["example"].to_pylist()
    numbers[0] = 6 if numbers[0] != 6 else 5
    pq.write_table(table.set_column(0, table.schema.field(0), pa.array(numbers, pa.int32())), path)
    repin(spoiling, files=True)
    assert rules(spoiling) == {"F16"}


def test_a_tag_of_another_snapshot_is_found(spoiling: Path) -> None:
    path = spoiling / "tags/paper.json"
    path.write_text(path.read_text().replace('"snapshot": 2', '"snapshot": 1'))
    assert rules(spoiling) == {"F14"}
    with pytest.raises(Damaged, match="paper"):
        attnstore.open(spoiling, tag="paper")


def test_without_its_newest_snapshot_a_store_is_what_it_was_unless_a_hash_is_expected(spoiling: Path) -> None:
    with attnstore.open(spoiling) as store:
        pinned = store.contents.snapshot.content_hash
    (spoiling / "snapshots/00000002.json").unlink()
    assert rules(spoiling) == {"F14"}  # the tag
    with pytest.raises(Damaged, match="content hash"):
        attnstore.open(spoiling, expect=pinned)
    with pytest.raises(Damaged, match="content hash"):
        verify(spoiling, expect=pinned)


def test_damage_in_an_older_snapshot_is_found_and_leaves_the_newest_readable(spoiling: Path) -> None:
    path = spoiling / "snapshots/00000001.json"
    path.write_text(path.read_text().replace('"number": 1', '"number": 7'))
    assert rules(spoiling) == {"F2"}
    attnstore.open(spoiling).close()
    assert "F2" in {finding.rule for finding in verify(spoiling, snapshot=2)}
    with pytest.raises(Damaged):
        verify(spoiling, snapshot=1)
