"""This file opens stores in data sets of the Hugging Face Hub: hf://datasets/OWNER/NAME[@REVISION][/FOLDER].

A revision is resolved to a commit once, and all is read at that commit. HF_ENDPOINT names another server, HF_TOKEN is
sent to it; huggingface_hub's own login serves as well.
"""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

from attnstore.errors import AttnStoreError, BadInput, MissingExtra, NotAStore, NotFound
from attnstore.format import names
from attnstore.format.remote import Remote, said

_SHAPE = "an address such as hf://datasets/OWNER/NAME@REVISION/FOLDER"
RETRIES = 5
"""So often a request for a file is tried again, a moment later each time."""

_NAME = r"[A-Za-z0-9][\w.-]*"
_ADDRESS = re.compile(
    rf"hf://datasets/(?P<repository>{_NAME}/{_NAME})(?:@(?P<revision>refs/(?:pr|convert)/[\w.-]+|[^/@]+))?"
    r"(?:/(?P<folder>[^@]*))?"
)


@dataclass(frozen=True, slots=True)
class HubPlace:
    """A folder of a data set at a revision; `folder` is empty for its top, `revision` None for its main branch."""

    repository: str
    revision: str | None
    folder: str

    def within(self, name: str) -> str:
        """The path in the repository of a file by its path in the store."""
        return f"{self.folder}/{name}".strip("/")


def hub_place(address: str) -> HubPlace:
    """What an address names. BadInput for one that names no data set."""
    found = _ADDRESS.fullmatch(address)
    folder = (found["folder"] or "").strip("/") if found else ""
    if found is None or not {"", ".", ".."}.isdisjoint(folder.split("/") if folder else ()):
        raise BadInput(f"opening {address}", "an address of no data set", _SHAPE)
    revision = unquote(found["revision"]) if found["revision"] else None
    return HubPlace(found["repository"], revision, folder)


def hub(doing: str) -> Any:
    """The client of the Hub that the environment names."""
    try:
        from huggingface_hub import HfApi
    except ImportError:
        raise MissingExtra(doing, "huggingface_hub", "hub") from None
    return HfApi(endpoint=os.environ.get("HF_ENDPOINT") or None, library_name="attnstore")


@contextmanager
def hub_errors(doing: str) -> Iterator[None]:
    """Turns what the client raises into NotAStore for what is not there or not shown, NotFound for no answer."""
    from huggingface_hub.errors import HfHubHTTPError, RepositoryNotFoundError, RevisionNotFoundError

    try:
        yield
    except AttnStoreError:
        raise
    except (RepositoryNotFoundError, RevisionNotFoundError) as error:
        what = "data set" if isinstance(error, RepositoryNotFoundError) else "revision"
        remedy = "See whether the address is right; for what is not public put a token into HF_TOKEN"
        raise NotAStore(doing, f"the Hub shows no such {what}", _SHAPE, remedy) from error
    except HfHubHTTPError as error:
        raise NotFound(doing, said(error), "an answer of the Hub", "Try again, or see whether HF_TOKEN may") from error
    except Exception as error:
        # The client, and the library below it that speaks HTTP, raise of many kinds; none of them is ours.
        if not isinstance(error, OSError) and not type(error).__module__.startswith(("httpx", "httpcore")):
            raise
        raise NotFound(doing, said(error), "an answer of the Hub", "Try again, or see HF_ENDPOINT") from error


def on_hub(address: str) -> Remote:
    """The place of the store in a data set, at the commit that its revision names now. NotAStore without one."""
    place, doing = hub_place(address), f"opening {address}"
    api = hub(doing)
    with hub_errors(doing):
        commit = str(api.dataset_info(place.repository, revision=place.revision).sha)
        snapshots = _children(api, place, commit, names.SNAPSHOTS)
    if not snapshots:
        raise NotAStore(doing, "no snapshot there", "a data set that holds a store", "Send one with: attnstore push")

    def listed(folder: str) -> Sequence[str]:
        if folder == names.SNAPSHOTS:
            return snapshots
        with hub_errors(doing):
            return _children(api, place, commit, folder)

    return Remote(address.rstrip("/"), _files(api, place, commit, doing), "", listed)


def _children(api: Any, place: HubPlace, commit: str, folder: str) -> list[str]:
    from huggingface_hub.errors import EntryNotFoundError
    from huggingface_hub.hf_api import RepoFile

    try:
        found = list(api.list_repo_tree(place.repository, place.within(folder), revision=commit, repo_type="dataset"))
    except EntryNotFoundError:
        return []
    return [one.path.rpartition("/")[2] for one in found if isinstance(one, RepoFile)]


def _files(api: Any, place: HubPlace, commit: str, doing: str) -> Any:
    """The files of a commit, which the Hub hands out itself or by sending readers on."""
    from huggingface_hub import get_token
    from obstore.store import HTTPStore

    folder = quote(place.within(""))
    url = f"{api.endpoint}/datasets/{place.repository}/resolve/{commit}/{folder}".rstrip("/")
    options: Any = {"allow_http": True, "connect_timeout": "10s", "read_timeout": "60s", "timeout": "1h"}
    if token := get_token():
        # Of another host, to which the Hub may send on, it is not told.
        options["default_headers"] = {"Authorization": f"Bearer {token}"}
    return HTTPStore.from_url(url, client_options=options, retry_config={"max_retries": RETRIES})
