"""This file tests what a bucket holds and hands out while requests fail between the store and a real S3 server.

A proxy cuts answers, refuses, is late, or drops the answer after the server did what it was asked for. Whatever comes:
no snapshot that was said to be there is lost or torn, a push goes on, and a read is right or an error of ours.
"""

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("obstore")

import numpy as np

from attnstore.errors import AttnStoreError
from attnstore.format.bucket import bucket
from attnstore.format.commit import latest
from attnstore.format.manifest import snapshot_to_json
from attnstore.format.verify import verify
from attnstore.job.refresh import refresh
from attnstore.share.pulling import pull
from attnstore.share.pushing import push
from attnstore.share.to_bucket import create, publish, writing
from attnstore.store.store import open as open_store
from tests.share.fault_proxy import FAULTS, between
from tests.share.s3_server import make_bucket, s3_url
from tests.share.test_s3 import history, keys, made

__all__ = ["s3_url"]
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("s3")]

MANY = [100, pytest.param(2000, marks=pytest.mark.soak)]


class Faults:
    """Breaks a share of all requests until so many were broken, by a fixed seed; `counts` says how."""

    def __init__(self, seed: int, share: float, most: int) -> None:
        self._random, self._share, self._left = random.Random(seed), share, most
        self.counts: dict[str, int] = dict.fromkeys(FAULTS, 0)

    def __call__(self, method: str, path: str) -> str | None:
        if self._left < 1 or self._random.random() > self._share:
            return None
        self._left -= 1
        fault = self._random.choice(FAULTS)
        self.counts[fault] += 1
        return fault

    @property
    def total(self) -> int:
        """Faults so far."""
        return sum(self.counts.values())


@pytest.fixture
def through(s3_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Sets the server that stores are opened on; no request is tried again by the client unless it says so."""
    make_bucket(s3_url, "stores")
    monkeypatch.setattr("attnstore.format.bucket.RETRIES", 0)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    monkeypatch.setenv("ATTNSTORE_CACHE", str(tmp_path / "cache"))

    def use(url: str) -> None:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)

    use(s3_url)
    return use


@pytest.fixture
def own(tiny_store: Path, tmp_path: Path) -> Path:
    """A copy of the tiny store with an addition."""
    shutil.copytree(tiny_store, tmp_path / "own.attn")
    refresh(tmp_path / "own.attn", "head_facts", {"eps": "0.01"})
    return tmp_path / "own.attn"


@pytest.mark.parametrize("many", MANY)
def test_a_push_goes_on_after_every_fault_and_the_bucket_ends_with_what_was_sent(
    own: Path, tmp_path: Path, s3_url: str, through: Callable[[str], None], many: int
) -> None:
    faults, stores = Faults(many, 0.15, many), 0
    with between(s3_url, faults) as proxy:
        while faults.total < many:
            stores += 1
            address, tries = f"s3://stores/faults-push-{many}/{stores}.attn", 0
            through(proxy.url)
            while True:
                tries += 1
                assert tries < 100
                try:
                    done = push(own, address)
                    break
                except AttnStoreError:
                    through(s3_url)
                    # Whoever looks meanwhile sees no snapshot, or a whole one.
                    seen_whole(address, own)
                    through(proxy.url)
            through(s3_url)
            assert done.snapshot == 2
            assert [one.content_hash for one in history(address)] == [latest(own).content_hash]
            if stores == 1 or faults.total == many:
                back = tmp_path / f"back-{stores}.attn"
                pull(address, back)
                assert verify(back, deep=True) == []
    assert all(faults.counts.values())


def seen_whole(address: str, own: Path) -> None:
    """See that every file that a snapshot there needs is there with its size."""
    there = keys(address)
    if [key for key in there if key.startswith("snapshots/")]:
        with open_store(own) as store:
            wanted = {f"{unit.folder}/{file.path}" for unit in store.contents.units for file in unit.files}
        assert wanted <= set(there)


@pytest.mark.parametrize("many", MANY)
def test_no_snapshot_that_was_committed_is_lost_or_comes_twice(
    own: Path, s3_url: str, through: Callable[[str], None], many: int
) -> None:
    faults, address, base = Faults(many + 1, 0.4, many), f"s3://stores/faults-commit-{many}", latest(own)
    committed, number = dict[str, int](), 0
    with between(s3_url, faults) as proxy:
        while faults.total < many:
            number += 1
            through(proxy.url)
            objects, snapshot = bucket(address), made(base, number)
            for _ in range(100):
                try:
                    with writing(address):
                        committed[snapshot.content_hash] = publish(objects, address, snapshot)
                    break
                except AttnStoreError:
                    continue
    through(s3_url)
    assert faults.counts["lost"]
    assert {one.content_hash: one.number for one in history(address)} == committed
    assert sorted(committed.values()) == list(range(2, 2 + number))


def test_a_snapshot_whose_answer_is_lost_counts_as_committed(
    own: Path, s3_url: str, through: Callable[[str], None]
) -> None:
    lost = iter(["lost"])
    with between(s3_url, lambda method, path: next(lost, None) if method == "PUT" else None) as proxy:
        through(proxy.url)
        text = snapshot_to_json(latest(own))
        assert create(bucket("s3://stores/lost"), "snapshots/00000002.json", text)
        assert [one.fault for one in proxy.taken() if one.method == "PUT"] == ["lost"]
        assert create(bucket("s3://stores/lost"), "snapshots/00000002.json", text)
        assert not create(bucket("s3://stores/lost"), "snapshots/00000002.json", text + b"\n")


@pytest.mark.parametrize("many", MANY)
def test_a_read_is_right_or_an_error_of_ours(
    own: Path, tmp_path: Path, s3_url: str, through: Callable[[str], None], monkeypatch: pytest.MonkeyPatch, many: int
) -> None:
    address = f"s3://stores/faults-read-{many}/own.attn"
    push(own, address)
    with open_store(own) as local:
        table, weights = local.ask("heads/entropy").to_arrow(), local.attention(2).to_numpy()
    faults, right, failed, opened = Faults(many + 2, 0.1, many), 0, 0, 0
    with between(s3_url, faults) as proxy:
        through(proxy.url)
        while faults.total < many:
            opened += 1
            monkeypatch.setenv("ATTNSTORE_CACHE", str(tmp_path / f"cache-{opened}"))
            try:
                with open_store(address) as store:
                    assert store.ask("heads/entropy").to_arrow().equals(table)
                    np.testing.assert_array_equal(store.attention(2).to_numpy(), weights)
                    right += 1
            except AttnStoreError:
                failed += 1
    assert right
    assert failed


def test_the_client_tries_again_so_that_single_faults_are_not_seen(
    own: Path, s3_url: str, through: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attnstore.format.bucket.RETRIES", 5)
    turn = [0]

    def choose(method: str, path: str) -> str | None:
        turn[0] += 1
        return ("500", "503", "slow")[turn[0] // 7 % 3] if turn[0] % 7 == 0 else None

    with between(s3_url, choose) as proxy:
        through(proxy.url)
        push(own, "s3://stores/single/own.attn")
        with open_store("s3://stores/single/own.attn") as store, open_store(own) as local:
            assert store.ask("heads/entropy").to_arrow().equals(local.ask("heads/entropy").to_arrow())
        assert [one for one in proxy.taken() if one.fault in ("500", "503")]
