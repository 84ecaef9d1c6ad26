"""Attacks by what lies where a file should: links, pipes, sockets, devices, and files of nothing."""

import os
import shutil
import socket
from pathlib import Path

from tests.forging import repin
from tests.hostile.attack import ARRAY, SEGMENT, edited, harmless, refused, unlist


def _moved(store: Path, name: str) -> None:
    """Put a link to a place outside where a file or folder was."""
    outside = store.with_name(f"outside {store.name}") / name.replace("/", "-")
    outside.parent.mkdir(exist_ok=True)
    shutil.move(store / name, outside)
    (store / name).symlink_to(outside)


def _pipe(store: Path, name: str) -> None:
    (store / name).unlink(missing_ok=True)
    os.mkfifo(store / name)


@refused("no regular file")
def a_link_to_a_shard(store: Path) -> None:
    """zarr follows it."""
    _moved(store, f"{ARRAY}/c/0/0/0")


@refused("no regular file")
def a_link_to_a_table(store: Path) -> None:
    """To the right bytes even."""
    _moved(store, f"{SEGMENT}/tokens.parquet")


@refused("is a link")
def a_link_to_a_folder_of_shards(store: Path) -> None:
    """The files in it are regular."""
    _moved(store, f"{ARRAY}/c")


@refused("is a link")
def a_link_to_a_segment(store: Path) -> None:
    """The folder of the unit itself."""
    _moved(store, SEGMENT)


@refused("is a link")
def a_link_to_all_segments(store: Path) -> None:
    """The folder above."""
    _moved(store, "segments")


@refused("no regular file")
def a_link_to_the_description(store: Path) -> None:
    """store.json."""
    _moved(store, "store.json")


@refused("no regular file")
def a_link_to_a_snapshot(store: Path) -> None:
    """The newest."""
    _moved(store, "snapshots/00000001.json")


@refused("no regular file")
def a_link_to_a_manifest(store: Path) -> None:
    """segment.json."""
    _moved(store, f"{SEGMENT}/segment.json")


@refused("no manifest lists it|it is missing")
def a_link_that_no_manifest_lists(store: Path) -> None:
    """A chunk of a layer that is found by its name alone."""
    _moved(store, f"{ARRAY}/c/1/0/0")
    unlist(store, "maps.zarr/encoder/c/1/")


@refused("no regular file")
def a_pipe_as_the_description(store: Path) -> None:
    """Opening it would wait for ever."""
    _pipe(store, "store.json")


@refused("no regular file")
def a_pipe_as_a_snapshot(store: Path) -> None:
    """Likewise."""
    _pipe(store, "snapshots/00000001.json")


@refused("no regular file")
def a_pipe_as_a_manifest(store: Path) -> None:
    """Likewise."""
    _pipe(store, f"{SEGMENT}/segment.json")


@refused("no regular file")
def a_pipe_as_a_table(store: Path) -> None:
    """Likewise."""
    _pipe(store, f"{SEGMENT}/examples.parquet")


@refused("no regular file")
def a_pipe_as_metadata(store: Path) -> None:
    """Likewise."""
    _pipe(store, f"{ARRAY}/zarr.json")


@refused("no manifest lists it|it is missing")
def a_pipe_as_a_chunk_that_no_manifest_lists(store: Path) -> None:
    """Likewise, where no look at listed files finds it."""
    _pipe(store, f"{ARRAY}/c/1/0/0")
    unlist(store, "maps.zarr/encoder/c/1/")


@refused("no regular file")
def a_socket_as_a_shard(store: Path) -> None:
    """A socket's path may have 100 letters, so it is made beside and renamed."""
    place = store / ARRAY / "c/0/0"
    (place / "0").unlink()
    here = os.getcwd()
    os.chdir(place)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind("0")
    finally:
        os.chdir(here)


@refused("no regular file")
def a_device_as_a_shard(store: Path) -> None:
    """An endless one, where making it is allowed; else a folder."""
    path = store / ARRAY / "c/0/0/0"
    path.unlink()
    try:
        os.mknod(path, 0o20600, os.makedev(1, 5))
    except PermissionError:
        path.mkdir()


@refused("not a number from 0")
def a_table_of_a_terabyte(store: Path) -> None:
    """Of nothing: hashing it would take an hour."""
    path = store / SEGMENT / "tokens.parquet"
    os.truncate(path, 2**40)

    def change(value: dict[str, list[dict[str, object]]]) -> None:
        next(file for file in value["files"] if file["path"] == path.name)["bytes"] = 2**40

    edited(store / SEGMENT / "segment.json", change)
    repin(store)


@refused("index that is not as written|cannot be decoded")
def a_shard_of_nothing(store: Path) -> None:
    """300 MB that take no room."""
    os.truncate(store / ARRAY / "c/0/0/0", 300 * 2**20)
    repin(store, files=True)


@harmless
def a_hard_link_to_outside(store: Path) -> None:
    """It cannot be told from a file."""
    path = store / SEGMENT / "tokens.parquet"
    os.link(path, store.with_name(f"{store.name} beside"))


@refused("no snapshot has such a name")
def a_folder_of_a_thousand_files_beside(store: Path) -> None:
    """Names that are no snapshots and no segments are passed over, and found by `verify`."""
    for number in range(1000):
        (store / "snapshots" / f"{number}.json.bak").touch()
    (store / "segments/copy of 000000").mkdir()
