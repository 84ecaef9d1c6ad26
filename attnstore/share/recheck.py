"""This file asks again what a citation cites, and says what differs.

A citation may come from a stranger. Of its SQL only what ships is trusted: the name of a question, whose text this
release has. A condition, or a question of one's own, runs behind the walls of `attnstore serve`.
"""

import contextlib
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnstore.catalogue.catalogue import questions
from attnstore.errors import BadInput, Damaged, MissingExtra
from attnstore.format.address import is_address
from attnstore.store.comparison import compare
from attnstore.store.contents import read_contents
from attnstore.store.result import Result, cited_versions
from attnstore.store.store import Store
from attnstore.store.walls import Walls

if TYPE_CHECKING:
    from attnstore.share.citation import Citation

CITATION_BYTES = 16 * 2**20
"""No citation is longer; a larger file is refused unread."""

_WALLS = Walls(seconds=3600, memory_bytes=4 * 2**30, threads=1)
_REQUIRED: dict[str, type] = {"store_id": str, "title": str, "snapshot": int, "content_hash": str, "versions": dict}
_OF_ANSWER: dict[str, type] = {"sql": str, "params": dict, "rows": int, "answer_sha256": str}


def read_citation(path: Path) -> dict[str, Any]:
    """The citation in a JSON file. BadInput for a file that holds none."""
    doing = f"reading {path}"
    try:
        if path.stat().st_size > CITATION_BYTES:
            raise BadInput(doing, f"{path.stat().st_size} bytes", f"{CITATION_BYTES} at most")
        value = json.loads(path.read_bytes())
    except OSError as error:
        raise BadInput(doing, error.strerror or str(error), "a citation as JSON") from error
    except (ValueError, RecursionError) as error:
        raise BadInput(doing, f"no valid JSON ({error})", "what `attnstore cite --format json` writes") from error
    if not isinstance(value, dict):
        raise BadInput(doing, f"a {type(value).__name__}", "an object, as `attnstore cite --format json` writes it")
    for name, kind in (_REQUIRED | (_OF_ANSWER if "answer_sha256" in value else {})).items():
        if not isinstance(value.get(name), kind):
            raise BadInput(doing, f"{name}={value.get(name)!r}", f"a {kind.__name__} under {name!r}")
    for name in ("question", "where", "text"):
        if not isinstance(value.get(name), str | None):
            raise BadInput(doing, f"{name}={value[name]!r}", f"text or null under {name!r}")
    other = value.get("compared_with")
    if other is not None and not (isinstance(other, dict) and isinstance(other.get("content_hash"), str)):
        raise BadInput(doing, "a second store without its content hash", "one with content_hash and snapshot")
    return value


def check(
    citation: "Citation", store: Path | str, other: Path | str | None = None, **pins: int | str | None
) -> list[str]:
    """Ask again what is cited, of the store here (of both, for a comparison); what differs without harm, in words.

    The store is opened at the snapshot that is cited, or as `pins` (`snapshot`, `tag`, `expect`) say, and must have the
    cited content hash. Damaged where it has another, or where the answer is not the cited one to the byte; NotFound
    where it has no such snapshot; BadInput for a citation that cannot be asked here; otherwise as `Store.ask`.
    """
    doing = f"checking the citation of {citation['title']!r}"
    beside = citation.get("compared_with")
    b: Store | None = None
    if (beside is None) is not (other is None):
        found = "it cites a comparison, and one store is given" if beside else "it cites one store, and two are given"
        raise BadInput(doing, found, "the stores that it cites", "Give the second store with --with")
    with contextlib.ExitStack() as stack:
        a = stack.enter_context(_opened(store, citation, citation, pins, doing))
        b = (
            None
            if other is None or beside is None
            else stack.enter_context(_opened(other, beside, citation, {}, doing))
        )
        differing = _versions(citation)
        if "answer_sha256" not in citation:
            return [differing] if differing else []
        again = _asked(citation, a, b, doing).cite()
    if (again["rows"], again["answer_sha256"]) == (citation["rows"], citation["answer_sha256"]):
        return [differing] if differing else []
    reasons = [differing] if differing else []
    if again["sql"] != citation["sql"]:
        reasons.append("the question has other SQL in this release")
    if citation.get("threads") != 1:
        reasons.append("the answer was computed by several threads, whose sums may differ in their last digit")
    raise Damaged(
        doing,
        f"another answer, of {again['rows']} rows, sha256 {again['answer_sha256']}",
        f"{citation['rows']} rows, sha256 {citation['answer_sha256']}",
        "; ".join(reasons) or "Content hash, SQL and versions are the same: the citation was changed, or the release",
    )


def _opened(
    place: Path | str, cited: Mapping[str, Any], whole: "Citation", pins: Mapping[str, Any], doing: str
) -> Store:
    """The store at the state that is cited, closed to the citation's own SQL where it has any."""
    given = {name: value for name, value in pins.items() if value is not None}
    if "snapshot" not in given and "tag" not in given and not is_address(place):
        given["snapshot"] = cited["snapshot"]
    contents = read_contents(place, **given)
    if contents.snapshot.content_hash != cited["content_hash"]:
        raise Damaged(
            doing,
            f"snapshot {contents.snapshot.number} of {place} has the content hash {contents.snapshot.content_hash}",
            str(cited["content_hash"]),
            "The store was changed, or is another one: fetch the one that was cited",
        )
    if not _has_own_sql(whole):
        return Store(contents, threads=1)
    if is_address(place):
        raise BadInput(
            doing,
            "it has SQL of its own, which is not run on a store behind an address",
            "a store in a folder, or a question that ships, without a condition",
            "Fetch the store, or read the SQL and run it with `attnstore sql`",
        )
    try:
        import fsspec  # noqa: F401
    except ImportError:
        raise MissingExtra(f"{doing}, which has SQL of its own", "fsspec", "serve") from None
    return Store(contents, _WALLS, threads=1)


def _has_own_sql(citation: "Citation") -> bool:
    return "answer_sha256" in citation and (
        citation.get("question") is None or citation.get("where") is not None or citation.get("text") is not None
    )


def _asked(citation: "Citation", a: Store, b: Store | None, doing: str) -> Result:
    name, params, where = citation.get("question"), dict(citation["params"]), citation.get("where")
    asked = a if b is None else compare(a, b)
    try:
        if name is None:
            return asked.sql(citation["sql"], **params)
        if citation.get("text") is not None:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / f"{Path(name).name}.sql"
                path.write_text(citation["text"], encoding="utf-8")
                return asked.ask(str(path), where=where, **params)
        if name not in questions():
            raise BadInput(doing, f"no question {name!r} ships with this release", "the release that was cited")
        return asked.ask(name, where=where, **params)
    finally:
        if asked is not a:
            asked.close()


def _versions(citation: "Citation") -> str:
    """How the versions differ from the cited ones; empty where they do not."""
    here = cited_versions()
    cited = {name: citation["versions"].get(name) for name in here}
    return ", ".join(
        f"{name} is {here[name]} here and was {version or 'not noted'} when cited"
        for name, version in cited.items()
        if version != here[name]
    )
