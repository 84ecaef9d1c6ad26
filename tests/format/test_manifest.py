"""Manifests are read as they were written, and refused where they are not what they should be."""

import json
from pathlib import Path

import pytest

from attnstore.errors import Damaged, NotAStore, UnsupportedFormat
from attnstore.format.manifest import read_snapshot, read_store, read_unit, store_to_json


def edited(store: Path, tmp_path: Path, edit: dict[str, object]) -> Path:
    value = json.loads((store / "store.json").read_text())
    value.update(edit)
    (tmp_path / "store.json").write_text(json.dumps(value))
    return tmp_path


def test_store_json_comes_back_as_it_went(tiny_store: Path) -> None:
    assert store_to_json(read_store(tiny_store)) == (tiny_store / "store.json").read_bytes()


def test_a_newer_minor_version_and_unknown_keys_are_read(tiny_store: Path, tmp_path: Path) -> None:
    assert read_store(edited(tiny_store, tmp_path, {"format": "1.7", "later": 1})).format == "1.7"


def test_a_newer_major_version_is_refused(tiny_store: Path, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedFormat, match=r"format 2\.0; expected format 1\.x"):
        read_store(edited(tiny_store, tmp_path, {"format": "2.0"}))


@pytest.mark.parametrize("edit", [{"format": None}, {"format": "one"}, {"kinds": 3}, {"segments": [{}]}, {"kept": []}])
def test_a_broken_store_json_is_damaged(tiny_store: Path, tmp_path: Path, edit: dict[str, object]) -> None:
    with pytest.raises(Damaged, match=r"store\.json|opening"):
        read_store(edited(tiny_store, tmp_path, edit))


def test_a_truncated_store_json_is_damaged(tiny_store: Path, tmp_path: Path) -> None:
    (tmp_path / "store.json").write_bytes((tiny_store / "store.json").read_bytes()[:-20])
    with pytest.raises(Damaged, match="no valid JSON"):
        read_store(tmp_path)


def test_a_folder_without_store_json_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(NotAStore, match="attnstore ingest"):
        read_store(tmp_path)


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "a/../../b", "a\\b", "", "a//b", "./a"])
def test_a_file_name_that_leaves_the_unit_is_refused(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "segments" / "000000"
    folder.mkdir(parents=True)
    file = {"path": name, "bytes": 1, "sha256": "0" * 64, "crc32c": "0" * 8}
    (folder / "segment.json").write_text(json.dumps({"id": "000000", "facts": {}, "rows": {}, "files": [file]}))
    with pytest.raises(Damaged, match="the file name"):
        read_unit(tmp_path, "segments/000000")


def test_a_manifest_behind_a_link_is_refused(tiny_store: Path, tmp_path: Path) -> None:
    folder = tmp_path / "segments" / "000000"
    folder.mkdir(parents=True)
    (folder / "segment.json").symlink_to(tiny_store / "segments" / "000000" / "segment.json")
    with pytest.raises(Damaged, match="no regular file"):
        read_unit(tmp_path, "segments/000000")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(
            ("sha256", value)
            for value in ("", "/srv/x/y", "../../x", "0" * 63, "A" * 64, "0" * 64 + "\n", "\u0660" * 64, 7)
        ),
        *(("crc32c", value) for value in ("", "0" * 7, "0" * 9, "ABCDEF00", None)),
        ("bytes", float("inf")),
    ],
)
def test_a_file_whose_hash_or_size_is_none_is_refused(tmp_path: Path, key: str, value: object) -> None:
    folder = tmp_path / "segments" / "000000"
    folder.mkdir(parents=True)
    file = {"path": "words.parquet", "bytes": 1, "sha256": "0" * 64, "crc32c": "0" * 8}
    for given, is_read in ((file, True), (file | {key: value}, False)):
        (folder / "segment.json").write_text(json.dumps({"id": "000000", "facts": {}, "rows": {}, "files": [given]}))
        if is_read:
            assert read_unit(tmp_path, "segments/000000").files[0].sha256 == "0" * 64
            continue
        with pytest.raises(Damaged, match=r"segment\.json"):
            read_unit(tmp_path, "segments/000000")


def test_a_snapshot_that_lists_a_hash_that_is_none_is_refused(tiny_store: Path, tmp_path: Path) -> None:
    value = json.loads((tiny_store / "snapshots/00000001.json").read_text())
    value["segments"][0]["sha256"] = "../" * 21 + "x"
    (tmp_path / "00000001.json").write_text(json.dumps(value))
    with pytest.raises(Damaged, match="not 64 lower-case hexadecimal digits"):
        read_snapshot(tmp_path / "00000001.json")
