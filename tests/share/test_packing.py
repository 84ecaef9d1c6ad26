"""Tests of packages: what pack writes opens in place and is unpacked as it was; what strangers pack is checked."""

import io
import json
import os
import shutil
import stat
import struct
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from attnstore.errors import AttnStoreError, BadInput, Damaged, NotAStore, NotFound
from attnstore.format import packed
from attnstore.format.packed import Package, is_package
from attnstore.format.verify import verify
from attnstore.job.refresh import refresh
from attnstore.job.run import ingest
from attnstore.share.packing import ALIGNMENT, pack, unpack
from attnstore.store.contents import read_contents
from attnstore.store.store import open as open_store
from tests.cli.running import good, invoke, rows
from tests.conftest import SENTENCES, arrays_recipe, write_arrays


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setenv("ATTNSTORE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def package(tiny_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny store in a zip file. Read it only."""
    place = tmp_path_factory.mktemp("packed") / "tiny.attn.zip"
    pack(read_contents(tiny_store), place)
    return place


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of four segments with an addition, two snapshots and tags."""
    place = tmp_path_factory.mktemp("many")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("attnstore.job.plan.SEGMENT_TOKENS", 1)
        ingest(arrays_recipe(write_arrays(place / "corpus", SENTENCES[:4])), place / "s").close()
    (place / "s/tags").mkdir()
    (place / "s/tags/first.json").write_text('{"snapshot": 1}')
    refresh(place / "s", "head_facts", {"eps": "0.01"})
    newest = len(list((place / "s/snapshots").iterdir()))
    (place / "s/tags/newest.json").write_text(json.dumps({"snapshot": newest}))
    return place / "s"


def contents_of(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_packing_twice_gives_equal_bytes(tiny_store: Path, package: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(tiny_store, tmp_path / "copy.attn")
    for path in copy.rglob("*"):
        os.utime(path, (1, 1))
    pack(read_contents(copy), tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == package.read_bytes()


def test_a_package_holds_the_store_and_what_describes_it(tiny_store: Path, package: Path) -> None:
    with zipfile.ZipFile(package) as opened:
        assert opened.testzip() is None
        assert set(opened.namelist()) == {*contents_of(tiny_store), "croissant.json"}
        assert opened.namelist() == sorted(opened.namelist())
        assert {one.compress_type for one in opened.infolist()} == {zipfile.ZIP_STORED}
        for name, data in contents_of(tiny_store).items():
            assert opened.read(name) == data


def test_the_bytes_of_each_file_are_aligned(package: Path) -> None:
    text = package.read_bytes()
    with zipfile.ZipFile(package) as opened:
        for one in opened.infolist():
            assert text.find(opened.read(one), one.header_offset + 30 + len(one.filename)) % ALIGNMENT == 0


def test_what_is_unpacked_is_the_store(many: Path, tmp_path: Path) -> None:
    pack(read_contents(many), tmp_path / "s.zip")
    unpack(tmp_path / "s.zip", tmp_path / "s")
    there, here = contents_of(many), contents_of(tmp_path / "s")
    assert {name for name in there.keys() - here.keys() if not name.startswith("snapshots/")} == {"tags/first.json"}
    assert here.keys() - there.keys() == {"croissant.json"}
    assert all(there[name] == data for name, data in here.items() if name in there)
    assert verify(tmp_path / "s", deep=True) == []
    pack(read_contents(tmp_path / "s"), tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == (tmp_path / "s.zip").read_bytes()


def test_an_older_snapshot_is_packed_alone(many: Path, tmp_path: Path) -> None:
    pack(read_contents(many, tag="first"), tmp_path / "s.zip")
    with open_store(tmp_path / "s.zip") as opened:
        assert opened.snapshot.number == 1
        assert not opened.contents.additions
    with zipfile.ZipFile(tmp_path / "s.zip") as found:
        assert not [name for name in found.namelist() if name.startswith("additions/")]
        assert [name for name in found.namelist() if name.startswith("tags/")] == ["tags/first.json"]
        assert b"snapshot 1" in found.read("README.md")
    with open_store(tmp_path / "s.zip", tag="first") as opened:
        assert opened.snapshot.number == 1
    with pytest.raises(NotFound, match="one of first"):
        open_store(tmp_path / "s.zip", tag="newest")


@pytest.mark.parametrize(
    "question",
    ["heads/entropy", "relations/best", "audit/counts", "audit/rounding", "clusters/distances"],
)
def test_answers_in_place_are_those_of_the_folder(many: Path, package: Path, tiny_store: Path, question: str) -> None:
    params = {"min_count": 1} if question == "relations/best" else {}
    with open_store(package) as here, open_store(tiny_store) as there:
        mine, theirs = (store.ask(question, **params).to_arrow() for store in (here, there))
        assert len(theirs)
        assert mine.schema == theirs.schema
        for name in theirs.column_names:
            assert mine[name].to_pylist() == pytest.approx(theirs[name].to_pylist(), nan_ok=True)


def test_maps_in_place_are_those_of_the_folder(many: Path, tmp_path: Path) -> None:
    pack(read_contents(many), tmp_path / "s.zip")
    with open_store(tmp_path / "s.zip") as here, open_store(many) as there:
        for example in range(4):
            for level in ("token", "word"):
                mine, theirs = (store.attention(example, level=level).to_numpy() for store in (here, there))  # type: ignore[arg-type]
                np.testing.assert_array_equal(mine, theirs)
        sums = "select kind, layer, head, sum(weight) s from attention group by all order by all"
        assert here.sql(sums).to_arrow()["s"].to_pylist() == pytest.approx(there.sql(sums).to_arrow()["s"].to_pylist())


def test_a_map_costs_its_bytes_and_a_question_its_tables(
    package: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[tuple[str, int]] = []
    span = Package.span

    def counted(self: Package, path: str, start: int, stop: int) -> memoryview:
        read.append((path, stop - start))
        return span(self, path, start, stop)

    monkeypatch.setattr(Package, "span", counted)
    with open_store(package) as store:
        store.attention(1, layer=0, head=0)
        assert {path for path, _ in read if "/c/" in path} == {"segments/000000/maps.zarr/encoder/c/0/0/0"}
        tables = {path.rpartition("/")[2] for path, _ in read if path.endswith(".parquet")}
        assert tables == {"examples.parquet", "tokens.parquet", "words.parquet"}
        read.clear()
        store.sql("select count(*) from head_facts")
        assert {path.rpartition("/")[2] for path, _ in read} == {"head_facts.parquet"}
    assert {path.suffix for path in cache.rglob("*") if path.is_file()} == {".parquet"}


def test_maps_of_another_layout_are_read_through_zarr(
    package: Path, tiny_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attnstore.format.shards.Shards.of", lambda *_: None)
    with open_store(package) as here, open_store(tiny_store) as there:
        np.testing.assert_array_equal(here.attention(3).to_numpy(), there.attention(3).to_numpy())


def test_zarr_alone_opens_the_maps(package: Path, tiny_store: Path) -> None:
    zarr = pytest.importorskip("zarr")
    with zarr.storage.ZipStore(package, mode="r") as files:
        group = zarr.open_group(files, path="segments/000000/maps.zarr", mode="r")
        theirs = zarr.open_group(tiny_store / "segments/000000/maps.zarr", mode="r")
        np.testing.assert_array_equal(group["encoder"][:], theirs["encoder"][:])


def test_without_obstore_a_package_opens(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("obstore", "obstore.store", "obstore.exceptions"):
        monkeypatch.setitem(__import__("sys").modules, name, None)
    with open_store(package) as store:
        assert store.attention(0).shape[0] == 2
        with pytest.raises(Damaged, match="it is missing"):
            (store.contents.root / "absent").read_bytes(10)


def test_commands_that_read_take_a_package(package: Path, tiny_store: Path, tmp_path: Path) -> None:
    for words in (("ask", "audit/counts"), ("info",)):
        mine, theirs = (rows(*words, place) for place in (package, tiny_store))
        assert [row for row in mine if row.get("what") != "path"] == [
            row for row in theirs if row.get("what") != "path"
        ]
    assert rows("sql", package, "select count(*) n from examples") == [{"n": len(SENTENCES)}]
    assert good("show", package, 1, "--layer", 0, "--head", 1).stdout == (
        good("show", tiny_store, 1, "--layer", 0, "--head", 1).stdout
    )
    assert good("card", package).stdout == good("card", tiny_store).stdout
    assert invoke("refresh", package, "head_facts").exit_code != 0


def test_the_commands_pack_and_unpack(tiny_store: Path, package: Path, tmp_path: Path) -> None:
    good("pack", tiny_store, "-o", tmp_path / "s.zip")
    assert (tmp_path / "s.zip").read_bytes() == package.read_bytes()
    good("pack", package, "-o", tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == package.read_bytes()
    pinned = read_contents(tiny_store).snapshot.content_hash
    assert isinstance(invoke("unpack", package, tmp_path / "s", "--expect", "00000000").exception, Damaged)
    assert pinned in good("unpack", package, tmp_path / "s", "--expect", pinned[:8]).stderr
    for words in (("pack", tiny_store, "-o", package), ("unpack", package, tmp_path / "s")):
        assert "there already" in str(invoke(*words).exception)
    assert verify(tmp_path / "s") == []


def test_a_file_that_is_not_as_recorded_is_not_packed(make_store: Callable[..., Path], tmp_path: Path) -> None:
    store = make_store()
    shard = next(store.glob("segments/000000/maps.zarr/encoder/c/1/0/0"))
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 1
    shard.write_bytes(data)
    with pytest.raises(Damaged, match=r"c/1/0/0.*sha256"):
        pack(read_contents(store), tmp_path / "s.zip")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["own.attn"]


def test_a_full_disk_leaves_no_package(
    tiny_store: Path, package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full(io.FileIO):
        def write(self, data: object) -> int:
            raise OSError(28, "No space left on device")

    real = Path.open

    def opened(self: Path, mode: str = "r", *rest: object, **more: object) -> object:
        if mode != "xb":
            return real(self, mode, *rest, **more)  # type: ignore[call-overload]
        real(self, "xb").close()
        return Full(self, "wb")

    monkeypatch.setattr(Path, "open", opened)
    with pytest.raises(AttnStoreError, match="No space left"):
        pack(read_contents(tiny_store), tmp_path / "s.zip")
    with pytest.raises(AttnStoreError, match="No space left"):
        unpack(package, tmp_path / "s")
    assert [path.name for path in tmp_path.iterdir()] in ([], ["cache"])


def test_too_little_room_is_told_before_anything_is_written(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda place: shutil._ntuple_diskusage(10, 10, 0))  # type: ignore[attr-defined]
    with pytest.raises(AttnStoreError, match="0 bytes free"):
        unpack(package, tmp_path / "s")


Edit = Callable[[list[tuple[zipfile.ZipInfo, bytes]]], None]


def rebuilt(package: Path, target: Path, edit: Edit) -> Path:
    """The package with other entries, written by zipfile as a stranger would."""
    with zipfile.ZipFile(package) as source:
        entries = [(one, source.read(one)) for one in source.infolist()]
    edit(entries)
    with pytest.MonkeyPatch.context() as patch, zipfile.ZipFile(target, "w") as made:
        patch.setattr("warnings.warn", lambda *_, **__: None)  # of names that come twice
        for one, data in entries:
            one.extra = b""
            made.writestr(one, data, one.compress_type)
    return target


def named(name: str, data: bytes = b"x", mode: int = 0o100644) -> tuple[zipfile.ZipInfo, bytes]:
    one = zipfile.ZipInfo(name)
    one.filename = name  # ZipInfo makes it a better one
    one.external_attr, one.create_system = mode << 16, 3
    return one, data


def compressed(entries: list[tuple[zipfile.ZipInfo, bytes]]) -> None:
    for one, _ in entries:
        one.compress_type = zipfile.ZIP_DEFLATED


HOSTILE: dict[str, tuple[Edit, str]] = {
    "above": (lambda e: e.append(named("../outside")), "leads elsewhere"),
    "inside above": (lambda e: e.append(named("segments/../../outside")), "leads elsewhere"),
    "absolute": (lambda e: e.append(named("/outside")), "leads elsewhere"),
    "backslash": (lambda e: e.append(named("..\\outside")), "leads elsewhere"),
    "control": (lambda e: e.append(named("a\nb")), "leads elsewhere"),
    "empty part": (lambda e: e.append(named("segments//x")), "leads elsewhere"),
    "link": (lambda e: e.append(named("segments/x", b"../../outside", stat.S_IFLNK | 0o777)), "is a link"),
    "device": (lambda e: e.append(named("segments/x", b"", stat.S_IFCHR | 0o666)), "is a link"),
    "folder as file": (lambda e: e.append(named("segments/x", b"", stat.S_IFDIR | 0o755)), "is a link"),
    "twice": (lambda e: e.append(named("store.json")), "twice"),
    "compressed": (compressed, "is compressed"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_zip_file_is_refused_when_it_is_opened(package: Path, tmp_path: Path, case: str) -> None:
    edit, told = HOSTILE[case]
    bad = rebuilt(package, tmp_path / "bad.zip", edit)
    for act in (lambda: open_store(bad), lambda: unpack(bad, tmp_path / "s")):
        with pytest.raises(Damaged, match=told):
            act()
    assert [path.name for path in tmp_path.iterdir()] == ["bad.zip"]


def without(name: str) -> Edit:
    return lambda entries: entries.__setitem__(slice(None), [one for one in entries if one[0].filename != name])


def other(name: str, data: bytes) -> Edit:
    return lambda e: e.__setitem__(slice(None), [(one, data if one.filename == name else was) for one, was in e])


SHARD = "segments/000000/maps.zarr/encoder/c/0/0/0"
UNFIT: dict[str, tuple[Edit, str]] = {
    "a file too many": (lambda e: e.append(named("segments/000000/more")), "which nothing lists"),
    "a README of a tag": (lambda e: e.append(named("tags/x.txt")), "which nothing lists"),
    "a file missing": (without(SHARD), f"0 bytes of {SHARD}"),
    "a file too short": (other(SHARD, b"x"), f"1 bytes of {SHARD}"),
    "another manifest": (other("segments/000000/segment.json", b"{}"), "sha256"),
    "another store.json": (other("store.json", b"{}"), "format version"),
}


@pytest.mark.parametrize("case", UNFIT)
def test_what_no_manifest_lists_is_refused_before_anything_is_written(package: Path, tmp_path: Path, case: str) -> None:
    edit, told = UNFIT[case]
    bad = rebuilt(package, tmp_path / "bad.zip", edit)
    with pytest.raises(Damaged, match=told):
        unpack(bad, tmp_path / "s")
    assert [path.name for path in tmp_path.iterdir()] == ["bad.zip"]


def test_other_bytes_of_the_same_length_leave_no_store(package: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(package) as source:
        data = bytearray(source.read(SHARD))
    data[7] ^= 4
    bad = rebuilt(package, tmp_path / "bad.zip", other(SHARD, bytes(data)))
    with pytest.raises(Damaged, match=f"{SHARD}.*sha256"):
        unpack(bad, tmp_path / "s")
    assert [path.name for path in tmp_path.iterdir()] == ["bad.zip"]


def test_encrypted_files_are_refused(package: Path, tmp_path: Path) -> None:
    text = bytearray(package.read_bytes())
    first = text.index(b"PK\x01\x02")
    text[first + 8] |= 1
    (tmp_path / "bad.zip").write_bytes(text)
    with pytest.raises(Damaged, match="is encrypted"):
        open_store(tmp_path / "bad.zip")


def test_names_that_share_bytes_are_refused(package: Path, tmp_path: Path) -> None:
    text = bytearray(package.read_bytes())
    entries = [at for at in range(len(text)) if text[at : at + 4] == b"PK\x01\x02"]
    text[entries[1] + 42 : entries[1] + 46] = text[entries[0] + 42 : entries[0] + 46]
    (tmp_path / "bad.zip").write_bytes(text)
    with pytest.raises(Damaged, match="overlaps"):
        open_store(tmp_path / "bad.zip")


def test_another_name_before_the_bytes_is_refused(package: Path, tmp_path: Path) -> None:
    text = package.read_bytes()
    with zipfile.ZipFile(package) as source:
        at = source.getinfo("store.json").header_offset + 30
    assert text[at : at + 10] == b"store.json"
    (tmp_path / "bad.zip").write_bytes(text[:at] + b"other.json" + text[at + 10 :])
    with pytest.raises(Damaged, match="another file at the place of store"):
        open_store(tmp_path / "bad.zip")


@pytest.mark.parametrize("long", [False, True], ids=["short end", "long end"])
def test_a_zip_file_that_claims_millions_of_files_is_refused_unread(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, long: bool
) -> None:
    monkeypatch.setattr(zipfile, "ZipFile", None)
    text = package.read_bytes()
    end = text.rindex(b"PK\x05\x06")
    if long:
        more = struct.pack("<4sQ2H2I4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, 2**40, 2**40, 2**50, 0)
        more += struct.pack("<4sIQI", b"PK\x06\x07", 0, end, 1)
        text = text[:end] + more + text[end:]
    else:
        text = text[: end + 12] + struct.pack("<I", 2**30) + text[end + 16 :]
    (tmp_path / "bad.zip").write_bytes(text)
    with pytest.raises(Damaged, match="files in it, named in"):
        open_store(tmp_path / "bad.zip")


def spoilt(text: bytes) -> Iterator[bytes]:
    """The package cut at many places, and with many bytes set."""
    for stop in range(0, len(text), len(text) // 10):
        yield text[:stop]
    first = text.index(b"PK\x01\x02")
    rng = np.random.default_rng(0)
    for at in rng.integers(first, len(text), 30):
        yield text[:at] + bytes([int(rng.integers(256))]) + text[at + 1 :]


def test_a_spoilt_zip_file_ends_in_a_typed_error_or_the_same_store(package: Path, tmp_path: Path) -> None:
    refused = 0
    for number, text in enumerate(spoilt(package.read_bytes())):
        bad = tmp_path / f"{number}.zip"
        bad.write_bytes(text)
        try:
            unpack(bad, tmp_path / "s")
        except AttnStoreError:
            refused += 1
            assert not (tmp_path / "s").exists()
        else:
            assert verify(tmp_path / "s") == []
            shutil.rmtree(tmp_path / "s")
        bad.unlink()
    assert refused > 10
    assert not [path for path in tmp_path.iterdir() if path.name != "cache"]


def test_a_zip_file_without_a_store_is_none(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as made:
        made.writestr("a.txt", "a")
    with pytest.raises(NotAStore, match=r"without store\.json"):
        open_store(tmp_path / "x.zip")
    (tmp_path / "y.zip").write_bytes(b"no zip at all")
    with pytest.raises(Damaged, match="no whole zip file"):
        open_store(tmp_path / "y.zip")
    with pytest.raises(BadInput, match="no zip file there"):
        unpack(tmp_path / "absent.zip", tmp_path / "s")


def test_what_is_no_zip_file_is_not_taken_for_one(tmp_path: Path, package: Path) -> None:
    (tmp_path / "text").write_text("PK is no beginning")
    (tmp_path / "folder.zip").mkdir()
    os.mkfifo(tmp_path / "pipe.zip")
    assert not any(is_package(tmp_path / name) for name in ("text", "folder.zip", "pipe.zip", "absent.zip"))
    shutil.copy(package, tmp_path / "whatever")
    assert is_package(str(tmp_path / "whatever"))
    with open_store(str(tmp_path / "whatever")) as store:
        assert store.snapshot.number == 1


def test_a_package_closes_its_file(package: Path) -> None:
    place = packed.packed(package)
    descriptor = place.objects._file
    os.fstat(descriptor)
    del place
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
