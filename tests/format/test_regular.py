"""Tests of opening regular files only."""

import os
from pathlib import Path

import pytest

from attnstore.errors import Damaged
from attnstore.format.regular import content, opened


def test_a_regular_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    assert content(tmp_path / "a", 5) == b"12345"
    with pytest.raises(Damaged, match="5 bytes; expected 4 at most"):
        content(tmp_path / "a", 4)


def test_what_is_no_regular_file_is_neither_opened_nor_waited_for(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    (tmp_path / "dangling").symlink_to(tmp_path / "nothing")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    for name in ("link", "dangling", "pipe", "folder"):
        with pytest.raises(Damaged, match="no regular file there"):
            opened(tmp_path / name)
    for name in ("nothing", "a/b", "a\0b", "x" * 300):
        with pytest.raises(Damaged):
            opened(tmp_path / name)
    assert (len(os.listdir("/proc/self/fd")) if before else 0) == before
