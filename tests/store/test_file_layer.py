"""Tests of the files that a database behind walls reads: several threads share one, and none gets another's bytes."""

import os
import threading
from pathlib import Path

import pytest

pytest.importorskip("fsspec")

from attnstore.store.contents import read_contents
from attnstore.store.file_layer import Opened
from attnstore.store.store import Store
from attnstore.store.store import open as open_store
from attnstore.store.walls import Walls


def test_threads_that_share_a_file_read_where_each_of_them_stands(tmp_path: Path) -> None:
    place = tmp_path / "file"
    data = os.urandom(1_000_000)
    place.write_bytes(data)
    wrong: list[int] = []
    with Opened(place) as file:

        def read(number: int) -> None:
            for turn in range(300):
                start = (number * 7919 + turn * 104_729) % 900_000
                file.seek(start)
                if file.read(5000) != data[start : start + 5000] or file.tell() != start + 5000:
                    wrong.append(start)

        threads = [threading.Thread(target=read, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []
        assert file.seek(-10, os.SEEK_END) == 999_990
        assert file.read() == data[-10:]
        assert file.read(1) == b""


def test_questions_behind_walls_have_the_answers_of_the_store(tiny_store: Path) -> None:
    """One statement reads one file in several threads: with a position in common every second answer was damaged."""
    with open_store(tiny_store) as plain:
        wanted = plain.ask("clusters/features").to_arrow()
    for _ in range(5):
        with Store(read_contents(tiny_store), Walls(5.0, 2**30, 1)) as walled:
            assert walled.ask("clusters/features").to_arrow().num_rows == wanted.num_rows
