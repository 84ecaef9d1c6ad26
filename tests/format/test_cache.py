"""Tests of the cache of fetched files: where they lie, and what is dropped of them."""

import os
import time
from pathlib import Path

import pytest

from attnstore.format.cache import STAGED_SECONDS, Cache
from attnstore.format.manifest import File

HASH = "ab" * 32


@pytest.mark.parametrize("sha256", ["/srv/x/y", "../../x", "", HASH.upper(), HASH + "/x", HASH[:-1]])
def test_a_hash_that_is_none_names_no_file(tmp_path: Path, sha256: str) -> None:
    cache = Cache(tmp_path / "cache")
    with pytest.raises(ValueError, match="64 lower-case hexadecimal digits"):
        cache.path(File("words.parquet", 1, sha256, "0" * 8))
    assert cache.path(File("words.parquet", 1, HASH, "0" * 8)) == tmp_path / "cache/ab" / f"{HASH}.parquet"


def test_room_is_not_made_of_what_another_process_is_writing(tmp_path: Path) -> None:
    folder = tmp_path / "ab"
    folder.mkdir()
    kept, staged, left = (folder / name for name in (f"{HASH}.parquet", f".{HASH}.parquet-1", f".{HASH}.parquet-2"))
    now = time.time()
    for path, age in ((kept, 60), (staged, 60), (left, 2 * STAGED_SECONDS)):
        path.write_bytes(bytes(10))
        os.utime(path, (now - age, now - age))
    Cache(tmp_path, 0)._make_room()
    assert list(folder.iterdir()) == [staged]
