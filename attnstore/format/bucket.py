"""This file opens stores in buckets of S3 and of servers that speak like it: s3://BUCKET/FOLDER.

Keys, region and server come from the environment, as for other programs: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
AWS_SESSION_TOKEN, AWS_REGION, AWS_ENDPOINT_URL. Without keys, requests are not signed: public buckets can be read.
"""

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from attnstore.errors import BadInput, NotAStore
from attnstore.format import names
from attnstore.format.remote import Remote, said, typed

_SHAPE = "an address such as s3://BUCKET/FOLDER"
RETRIES = 5
"""So often a request is tried again, a moment later each time."""

_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")

_KEYS = (
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_METADATA_ENDPOINT",
)
"""Where none of these is set there are no keys: a machine's own server for them, which may not exist, is not asked."""


def bucket(address: str) -> Any:
    """The obstore store of the folder that an address names. BadInput for an address that names none."""
    from obstore.store import S3Store

    name, _, folder = address.partition("://")[2].strip("/").partition("/")
    if "@" in name:
        raise BadInput(
            "opening an address s3://…", "a key in it", _SHAPE, "Put it into AWS_ACCESS_KEY_ID and …_SECRET…"
        )
    if not _BUCKET.fullmatch(name) or not {"", ".", ".."}.isdisjoint(folder.split("/") if folder else ()):
        raise BadInput(f"opening {address}", "an address of no folder in a bucket", _SHAPE)
    is_plain = os.environ.get("AWS_ENDPOINT_URL", "").startswith("http://")
    settings: Any = {
        # A large file may take long; a server that sends nothing for a minute has stopped.
        "client_options": {
            "allow_http": is_plain,
            "connect_timeout": "10s",
            "read_timeout": "60s",
            "timeout": "1h",
        },
        "retry_config": {"max_retries": RETRIES},
        # The server refuses what did not arrive as it was sent.
        "checksum_algorithm": "SHA256",
    }
    if not any(os.environ.get(key) for key in _KEYS):
        settings["skip_signature"] = True
    try:
        return S3Store(name, prefix=folder or None, **settings)
    except Exception as error:  # a region or server that is none
        raise BadInput(f"opening {address}", said(error), _SHAPE) from error


def in_bucket(address: str) -> Remote:
    """The place of the store in a bucket, with the snapshots that it has now. NotAStore where there are none."""
    objects, address = bucket(address), address.rstrip("/")
    found: Mapping[str, Sequence[str]] = {names.SNAPSHOTS: _first(objects, address)}

    def listed(folder: str) -> Sequence[str]:
        with typed(Remote(f"{address}/{folder}", objects, folder)):
            return found[folder] if folder in found else children(objects, folder)

    return Remote(address, objects, "", listed)


def children(objects: Any, folder: str) -> list[str]:
    """The names of the objects directly in a folder of a bucket. Raises as obstore does."""
    import obstore

    found = obstore.list_with_delimiter(objects, folder)["objects"]
    return [str(one["path"]).rpartition("/")[2] for one in found]


def _first(objects: Any, address: str) -> list[str]:
    from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError

    doing = f"opening {address}"
    try:
        found = children(objects, names.SNAPSHOTS)
    except (UnauthenticatedError, PermissionDeniedError, PermissionError) as error:
        remedy = "Put keys that may read it into AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        raise NotAStore(doing, f"the server refuses ({said(error)})", "", remedy) from error
    except (BaseError, OSError) as error:
        remedy = "See whether bucket, AWS_REGION and AWS_ENDPOINT_URL are right"
        raise NotAStore(doing, f"no answer ({said(error)})", "a bucket", remedy) from error
    if not found:
        raise NotAStore(doing, "no snapshot there", "the folder of a store", "Send one there with: attnstore push")
    return found
