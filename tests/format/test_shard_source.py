"""Tests of where shards come from an address: who waits for the answers."""

import os
import threading

import pytest

from attnstore.format.remote import REQUESTS, Remote
from attnstore.format.shard_source import Address

obstore = pytest.importorskip("obstore")
DATA = bytes(range(256)) * 4


@pytest.fixture
def root() -> Remote:
    objects = obstore.store.MemoryStore()
    obstore.put(objects, "maps/c/0", DATA)
    return Remote("memory:", objects, "maps")


def read(root: Remote) -> bytes:
    shard = Address(root, {"c/0": len(DATA)}).open("c/0")
    shard.ahead([(10, 20)])
    found = bytes(shard.read(20, 10))
    shard.close()
    return found


def test_many_arrays_share_the_threads_that_wait_for_answers(root: Remote) -> None:
    for _ in range(3 * REQUESTS):
        assert read(root) == DATA[10:30]
    waiting = [thread for thread in threading.enumerate() if thread.name.startswith("attnstore-fetch")]
    assert 1 <= len(waiting) <= REQUESTS


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own() -> None:
    """Asked of something that is no server, as obstore's own threads are not promised to outlive a fork."""

    class Here:
        def __truediv__(self, name: str) -> "Here":
            return self

        def read_range(self, start: int, stop: int) -> memoryview:
            return memoryview(DATA)[start:stop]

    place: Remote = Here()  # type: ignore[assignment]
    assert read(place) == DATA[10:30]
    child = os.fork()
    if child == 0:
        threading.Timer(10, os._exit, [2]).start()  # a pool without its threads would wait for ever
        os._exit(0 if read(place) == DATA[10:30] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
