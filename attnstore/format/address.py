"""This file makes the place of a store from an address: in a bucket, on the Hub, or in a service.

Of a service it may be the address of the store's page, of its entry, or of its files. The service says at which
snapshot it shows a store and where the files of that snapshot are. They never change, so all that is read afterwards
fits together.
"""

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from attnstore.errors import BadInput, Damaged, NotAStore, NotFound
from attnstore.format import names
from attnstore.format.bucket import in_bucket
from attnstore.format.hub import on_hub
from attnstore.format.remote import Remote, received, said

TOKEN = "ATTNSTORE_TOKEN"
"""The variable whose value is sent to services as their bearer token."""

ABOUT_BYTES = 2**20
"""What a service says of its stores is no longer; a longer answer is refused unread."""

_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)
_STORE = re.compile(r"(?P<above>.*?)/(?:v1/)?stores/(?P<name>[a-z0-9][a-z0-9._-]*)(?:/.*)?")
_FILES = re.compile(r"(?P<above>.*?)/files/(?P<key>[0-9a-f]{8,64})/?")
_SHAPE = "an address such as https://HOST/stores/NAME"
_KINDS = "s3://, hf:// or https://, or the path of a folder"


@dataclass(frozen=True, slots=True)
class Served:
    """A store behind an address: the place of its files.

    `content_hash` is that of the snapshot to which they belong, where a service says so.
    """

    root: Remote
    content_hash: str | None = None


def is_address(place: object) -> bool:
    """Whether this is an address, and not the path of a folder."""
    return isinstance(place, str) and _ADDRESS.match(place) is not None


def served(address: str) -> Served:
    """What an address leads to, asked of its service in one request, of a bucket by a list, of the Hub by two.

    BadInput for an address of a kind that is not read, NotAStore where no service answers, it refuses, or it shows no
    such store.
    """
    doing, parts = f"opening {address}", urlsplit(address)
    match parts.scheme.lower():
        case "s3":
            return Served(in_bucket(address))
        case "hf":
            return Served(on_hub(address))
        case "http" | "https":
            pass
        case other:
            raise BadInput(doing, f"an address of the kind {other}", _KINDS)
    if parts.username is not None or parts.password is not None:
        raise BadInput(
            f"opening {parts.hostname}", "an address with a password in it", _SHAPE, f"Put the token into {TOKEN}"
        )
    for pattern in (_FILES, _STORE):
        if found := pattern.fullmatch(parts.path):
            break
    else:
        raise NotAStore(doing, "an address of no store", _SHAPE, "The first page of a service names its stores")
    origin = urlunsplit((parts.scheme, parts.netloc, f"{found['above']}/", "", ""))
    objects, given = _http(origin, doing), found.groupdict()
    about = _about(objects, doing, given)
    if found.re is _FILES:
        address = urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", ""))
    number, pinned, files = about.get("snapshot"), about.get("content_hash"), str(about.get("files")).strip("/")
    # Only the service itself: another place would get the token.
    if not isinstance(number, int) or not isinstance(pinned, str) or not re.fullmatch(r"files/[0-9a-f]{8,64}", files):
        raise NotAStore(doing, "an answer that names no snapshot and files", "a service of attnstore")

    def listed(folder: str) -> Sequence[str]:
        return [names.snapshot_name(number)] if folder == names.SNAPSHOTS else []

    return Served(Remote(address, objects, files, listed), pinned)


def _about(objects: Any, doing: str, given: Mapping[str, str]) -> Mapping[str, Any]:
    """What the service says of the store with this name, or of the one whose files have this key."""
    from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError

    path = f"v1/stores/{given['name']}" if "name" in given else "v1/stores"
    try:
        text = received(objects, path, ABOUT_BYTES, doing)
    except FileNotFoundError:
        remedy = "The first page of a service names its stores"
        raise NotAStore(doing, "the server shows no such store", _SHAPE, remedy) from None
    except (UnauthenticatedError, PermissionDeniedError, PermissionError):
        found = "the token is not the right one" if os.environ.get(TOKEN) else "the server asks for a token"
        raise NotAStore(doing, found, "", f"Put it into the variable {TOKEN}") from None
    except Damaged as error:
        raise NotAStore(doing, f"an answer of {error.found}", f"{ABOUT_BYTES} at most") from None
    except (BaseError, OSError) as error:
        remedy = "See whether the address is right and the service runs"
        raise NotAStore(doing, f"no answer ({said(error)})", "a service of attnstore", remedy) from error
    try:
        value: Any = json.loads(text)
        entries = value if isinstance(value, list) else [value]
        hashes = [str(entry["content_hash"]) for entry in entries]
    except (ValueError, TypeError, KeyError):
        raise NotAStore(doing, "an answer that is not of attnstore", "a service of attnstore") from None
    if "name" in given:
        return dict(entries[0])
    for entry, own in zip(entries, hashes, strict=True):
        if own.startswith(given["key"]):
            return dict(entry)
    raise NotFound(doing, f"no snapshot {given['key']}", f"one of {', '.join(own[:16] for own in hashes)}")


def _http(url: str, doing: str) -> Any:
    from obstore.store import HTTPStore

    token = os.environ.get(TOKEN)
    # A table of a large store may take long; a server that sends nothing for a minute has stopped.
    options: Any = {"allow_http": True, "connect_timeout": "10s", "read_timeout": "60s", "timeout": "1h"}
    if token:
        options["default_headers"] = {"Authorization": f"Bearer {token}"}
    try:
        return HTTPStore.from_url(url, client_options=options, retry_config={"max_retries": 5})
    except Exception as error:  # a host that is none, a token that no header can hold
        raise BadInput(doing, said(error), _SHAPE) from error


def check_pinned(served: Served, content_hash: str) -> None:
    """Damaged unless the snapshot that was read is the one that the service named, if one did."""
    if served.content_hash is not None and content_hash != served.content_hash:
        found = f"a snapshot with the content hash {content_hash[:16]}…"
        raise Damaged(f"opening {served.root}", found, f"{served.content_hash[:16]}…, as the service says")
