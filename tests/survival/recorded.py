"""This file replays recorded file-system calls into what a disk may hold after the power failed.

What the calls promise, and no more: a file's bytes are safe after it was synced, a name in a folder after that folder
was synced. Else bytes may be lost, cut off or zero, and each change of a name may be there or not, on its own, whatever
the order in which they were made. A rename is one change: never both names lost.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Call:
    """One recorded call; `inode` and `offset` where it is about an open file, `data` what was written."""

    what: str
    inode: int
    offset: int
    path: str
    other: str
    data: bytes


def read_log(path: Path) -> list[Call]:
    """The calls that `faults.c` recorded, in order."""
    calls = []
    with path.open("rb") as file:
        while line := file.readline():
            what, inode, offset, size, first, second = line.decode().rstrip("\n").split("\t")
            calls.append(Call(what, int(inode), int(offset), first, second, file.read(int(size))))
    return calls


@dataclass(eq=False, slots=True)
class File:
    """Bytes as running programs see them, and those that were synced; `is_synced` where they are the same."""

    now: bytearray = field(default_factory=bytearray)
    safe: bytes = b""
    is_synced: bool = True

    def after_power_loss(self, rng: random.Random) -> bytes:
        """What the disk may hold."""
        if self.is_synced:
            return bytes(self.now)
        later = bytes(self.now[len(self.safe) :])  # files of a store are only ever appended to
        cut = later[: rng.randrange(len(later) + 1)]
        return self.safe + rng.choice((b"", cut, bytes(len(later)), later))


@dataclass(frozen=True, eq=False, slots=True)
class Change:
    """One change of names: `added` there or `removed` from there, (folder, name) each. Several folders: a rename."""

    added: tuple["Folder", str] | None
    removed: tuple["Folder", str] | None
    node: "File | Folder"


@dataclass(eq=False, slots=True)
class Folder:
    """Names as running programs see them, and those that are safe."""

    now: dict[str, "File | Folder"] = field(default_factory=dict)
    safe: dict[str, "File | Folder"] = field(default_factory=dict)


Names = Callable[[Folder], dict[str, "File | Folder"]]
"""Which names of a folder are meant."""


class Disk:
    """A folder `top`, which is there and safe, and what recorded calls make of it."""

    def __init__(self, top: Path) -> None:
        self.top, self.root = str(top), Folder()
        self.changes: list[Change] = []  # which no sync has made safe yet
        self.files: dict[int, File] = {}
        self.marks: list[str] = []

    def do(self, call: Call) -> None:
        """Let one call take effect."""
        match call.what:
            case "none":
                pass  # refused by the system
            case "mark":
                self.marks.append(call.path)
            case "create":
                self.files[call.inode] = File()
                self._change(Change(self._place(call.path), None, self.files[call.inode]))
            case "reopen":
                if call.offset:
                    self.files[call.inode].now.clear()
                    self.files[call.inode].is_synced = False
            case "mkdir":
                self._change(Change(self._place(call.path), None, Folder()))
            case "write":
                file = self.files[call.inode]
                file.now.extend(bytes(max(0, call.offset - len(file.now))))
                file.now[call.offset : call.offset + len(call.data)] = call.data
                file.is_synced = False
            case "truncate":
                file = self.files[call.inode]
                del file.now[call.offset :]
                file.now.extend(bytes(call.offset - len(file.now)))
                file.is_synced = False
            case "link":
                self._change(Change(self._place(call.other), None, self._node(call.path)))
            case "rename":
                self._change(Change(self._place(call.other), self._place(call.path), self._node(call.path)))
            case "unlink" | "rmdir":
                self._change(Change(None, self._place(call.path), self._node(call.path)))
            case "sync":
                # By its path: the number of a file that was removed may have gone to a folder.
                node = self._there(call.path)
                self._sync(node if isinstance(node, Folder) else self.files[call.inode])
            case _:
                raise AssertionError(call.what)

    def _sync(self, node: File | Folder) -> None:
        if isinstance(node, File):
            node.safe, node.is_synced = bytes(node.now), True
            return
        for change in self.changes:
            if node in _folders(change):
                _apply(change, safe=True)
        self.changes = [change for change in self.changes if node not in _folders(change)]

    def _change(self, change: Change) -> None:
        _apply(change, safe=False)
        self.changes.append(change)

    def _place(self, path: str) -> tuple[Folder, str]:
        parent, _, name = path.rpartition("/")
        folder = self._node(parent)
        assert isinstance(folder, Folder)
        return folder, name

    def _node(self, path: str) -> File | Folder:
        node: File | Folder = self.root
        for name in path.removeprefix(self.top).strip("/").split("/"):
            assert isinstance(node, Folder)
            node = node.now[name] if name else node
        return node

    def _there(self, path: str) -> File | Folder | None:
        try:
            return self._node(path)
        except KeyError:
            return None

    def write_now(self, target: Path) -> None:
        """Write what running programs see into an empty folder."""
        for path, node in _walk(self.root, target, lambda folder: folder.now):
            path.mkdir() if isinstance(node, Folder) else path.write_bytes(node.now)

    def write_image(self, target: Path, rng: random.Random, *, worst: bool = False) -> None:
        """Write what may be left when the power fails now into an empty folder; the `worst`: only what was synced."""
        # The chances differ from image to image: with one half for each, nearly none would keep or lose them all.
        chance = 0.0 if worst else rng.choice((0.0, 0.1, 0.5, 0.9, 1.0))
        kept = [change for change in self.changes if rng.random() < chance]
        names: dict[int, dict[str, File | Folder]] = {}
        for change in kept:
            # A rename whose source was lost with the change that made it cannot be.
            source = change.removed
            if source is None or _held(names, source[0]).get(source[1]) is change.node:
                if source is not None:
                    del _held(names, source[0])[source[1]]
                if change.added is not None:
                    _held(names, change.added[0])[change.added[1]] = change.node
        for path, node in _walk(self.root, target, lambda folder: _held(names, folder)):
            path.mkdir() if isinstance(node, Folder) else path.write_bytes(node.after_power_loss(rng))


def _folders(change: Change) -> list[Folder]:
    return [place[0] for place in (change.added, change.removed) if place is not None]


def _apply(change: Change, *, safe: bool) -> None:
    if change.removed is not None:
        folder, name = change.removed
        (folder.safe if safe else folder.now).pop(name, None)
    if change.added is not None:
        folder, name = change.added
        (folder.safe if safe else folder.now)[name] = change.node


def _held(names: dict[int, dict[str, File | Folder]], folder: Folder) -> dict[str, File | Folder]:
    return names.setdefault(id(folder), dict(folder.safe))


def _walk(folder: Folder, path: Path, names: Names) -> Iterator[tuple[Path, File | Folder]]:
    for name, node in names(folder).items():
        yield path / name, node
        if isinstance(node, Folder):
            yield from _walk(node, path / name, names)
