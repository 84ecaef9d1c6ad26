"""This file sends a snapshot to a data set of the Hub, in commits that each stand on a state that was looked at.

The Hub refuses a commit where another came between; then the state is looked at anew. So two who send at once never
mix, and the snapshot comes with the last commit, when all that it lists is there.
"""

import hashlib
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnstore.errors import BadInput, NotFound
from attnstore.format import names
from attnstore.format.hub import HubPlace, hub, hub_errors, hub_place
from attnstore.format.manifest import File
from attnstore.format.remote import said
from attnstore.share.pushing import Outgoing, Pushed, Told, blocks, numbered, refuse_other, tag_text

FILES = 100
"""A commit holds at most so many: what the Hub advises. An interrupted push goes on after the last one."""

_AGAIN = "Run the same command again: what is there is not sent anew"

TRIES = 20
"""So often another's commit may come between before it is given up."""


@dataclass(frozen=True, slots=True)
class _State:
    """A commit and the files that it holds, by path, as the Hub describes them."""

    commit: str
    files: Mapping[str, Any]

    def holds(self, path: str, data: bytes) -> bool:
        """Whether the file at `path` is this."""
        return self.holds_file(path, File("", len(data), hashlib.sha256(data).hexdigest(), ""), data)

    def holds_file(self, path: str, file: File, data: bytes | Path) -> bool:
        """Whether the file at `path` is this, by the hash that the Hub knows: sha256 of large ones, else git's."""
        there = self.files.get(path)
        if there is None or there.size != file.bytes:
            return False
        if there.lfs is not None:
            return bool(there.lfs.sha256 == file.sha256)
        text = data if isinstance(data, bytes) else data.read_bytes()
        return bool(there.blob_id == hashlib.sha1(b"blob %d\0" % len(text) + text, usedforsecurity=False).hexdigest())


class _Conflict(Exception):
    """Another commit came between."""


def send(out: Outgoing, address: str, told: Told) -> Pushed:
    """Send a snapshot to a data set, which is made where there is none. Raises as `push` does."""
    doing = f"sending to {address}"
    sending = _Sending(out, address, hub_place(address), hub(doing), told)
    with hub_errors(doing), _bars_on_a_terminal():
        sending.api.create_repo(sending.place.repository, repo_type="dataset", exist_ok=True)
        for _ in range(TRIES):
            try:
                return sending.all()
            except _Conflict:
                continue
    raise NotFound(doing, f"another commit came between {TRIES} times", "a quiet moment", _AGAIN)


@contextmanager
def _bars_on_a_terminal() -> Iterator[None]:
    """The client shows how large files go, also where nobody looks."""
    from huggingface_hub.utils.tqdm import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    is_ours = not are_progress_bars_disabled() and not (sys.stderr is not None and sys.stderr.isatty())
    if is_ours:
        disable_progress_bars()
    try:
        yield
    finally:
        if is_ours:
            enable_progress_bars()


class _Sending:
    """One push: what it has sent so far."""

    def __init__(self, out: Outgoing, address: str, place: HubPlace, api: Any, told: Told) -> None:
        self.out, self.address, self.place, self.api, self.told = out, address, place, api, told
        self.sent, self.sent_bytes = 0, 0

    def all(self) -> Pushed:
        """Send what is not there, and the snapshot. Raises _Conflict where another commit came between."""
        out, state = self.out, self._look()
        manifests = [out.manifest(unit) for unit in out.contents.units]
        for path, data in ((names.STORE, out.store), *manifests):
            if self.place.within(path) in state.files and not state.holds(self.place.within(path), data):
                raise refuse_other(self.address, "store" if path == names.STORE else path)
        waiting: dict[str, bytes | Path] = {names.STORE: out.store}
        kept = 0
        for unit, (manifest, text) in zip(out.contents.units, manifests, strict=True):
            for file in unit.files:
                path = f"{unit.folder}/{file.path}"
                local = out.contents.folder / path
                if state.holds_file(self.place.within(path), file, local):
                    kept += 1
                    continue
                for _ in blocks(local, file):  # before it is sent, held against its hash
                    pass
                waiting[path] = local
            waiting[manifest] = text
        waiting = {
            path: data
            for path, data in waiting.items()
            if isinstance(data, Path) or not state.holds(self.place.within(path), data)
        }
        paths, commit = list(waiting), state.commit
        for first in range(0, len(paths), FILES):
            commit = self._commit({path: waiting[path] for path in paths[first : first + FILES]}, commit)
        return self._finish(_State(commit, state.files), kept)

    def _finish(self, state: _State, kept: int) -> Pushed:
        number, text = self._numbered(state)
        last: dict[str, bytes | Path] = {f"{names.SNAPSHOTS}/{names.snapshot_name(number)}": text} if text else {}
        other = []
        for tag in self.out.tags:
            path = f"{names.TAGS}/{tag}.json"
            if self.place.within(path) not in state.files:
                last[path] = tag_text(number, self.out.snapshot.content_hash)
            elif json.loads(self._read(state, path)).get("snapshot") != number:
                other.append(tag)
        for name, page in self.out.pages.items():
            if not state.holds(self.place.within(name), page):
                last[name] = page
        commit = self._commit(last, state.commit) if last else state.commit
        content = self.out.snapshot.content_hash
        return Pushed(number, content, self.sent, self.sent_bytes, kept, commit, tuple(other))

    def _numbered(self, state: _State) -> tuple[int, bytes | None]:
        """The number under which the snapshot will be there, and its text; None where it is there."""
        snapshot, top = self.out.snapshot, f"{self.place.within(names.SNAPSHOTS)}/"
        below = [path.removeprefix(top) for path in state.files if path.startswith(top)]
        numbers = sorted(number for name in below if (number := names.snapshot_number(name)) is not None)
        if snapshot.number not in numbers:
            return snapshot.number, numbered(snapshot, snapshot.number, snapshot.parent)
        for number in (snapshot.number, numbers[-1]):
            there = json.loads(self._read(state, f"{names.SNAPSHOTS}/{names.snapshot_name(number)}"))
            if there.get("content_hash") == snapshot.content_hash:
                return number, None
        return numbers[-1] + 1, numbered(snapshot, numbers[-1] + 1, numbers[-1])

    def _look(self) -> _State:
        from huggingface_hub.errors import EntryNotFoundError
        from huggingface_hub.hf_api import RepoFile

        place = self.place
        commit = str(self.api.dataset_info(place.repository, revision=place.revision).sha)
        try:
            tree = self.api.list_repo_tree(
                place.repository, place.folder or None, recursive=True, revision=commit, repo_type="dataset"
            )
            return _State(commit, {one.path: one for one in tree if isinstance(one, RepoFile)})
        except EntryNotFoundError:
            return _State(commit, {})

    def _read(self, state: _State, path: str) -> bytes:
        """A small file of a state."""
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            found = self.api.hf_hub_download(
                self.place.repository,
                self.place.within(path),
                repo_type="dataset",
                revision=state.commit,
                local_dir=folder,
            )
            return Path(found).read_bytes()

    def _commit(self, files: Mapping[str, bytes | Path], parent: str) -> str:
        """Commit these files on top of `parent`; the new commit. _Conflict where it is no longer the newest."""
        from huggingface_hub import CommitOperationAdd
        from huggingface_hub.errors import HfHubHTTPError

        operations = [CommitOperationAdd(self.place.within(path), data) for path, data in files.items()]
        try:
            made = self.api.create_commit(
                self.place.repository,
                operations,
                commit_message=f"attnstore {self.out.snapshot.content_hash[:16]}",
                repo_type="dataset",
                revision=self.place.revision,
                parent_commit=parent,
            )
        except HfHubHTTPError as error:
            if error.response is not None and error.response.status_code in (409, 412):
                raise _Conflict from error
            raise
        except RuntimeError as error:  # what the client says where a large file could not be sent
            found = f"{error} ({said(error.__cause__ or error)})"
            raise NotFound(f"sending to {self.address}", found, "an answer of the Hub", _AGAIN) from error
        except ValueError as error:  # such as a README.md without what the Hub wants to see
            remedy = "Make a README.md with: attnstore card" if "README" in str(error) else ""
            raise BadInput(f"sending to {self.address}", str(error), remedy=remedy) from error
        for data in files.values():
            size = len(data) if isinstance(data, bytes) else data.stat().st_size
            self.sent, self.sent_bytes = self.sent + 1, self.sent_bytes + size
            self.told(size)
        return str(made.oid)
