"""This file says what the API takes and gives, for the OpenAPI document and for what FastAPI checks."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from attnstore.serve.forms import TYPES
from attnstore.serve.problems import KINDS

Responses = dict[int | str, dict[str, Any]]
Value = str | int | float | bool | None
Form = Literal["json", "csv", "arrow"]

NPY = "application/x-npy"


class Statement(BaseModel):
    """A statement of SQL and where it is asked."""

    model_config = ConfigDict(extra="forbid")

    sql: str = Field(description="One SELECT over the published tables.", min_length=1, max_length=65536)
    params: dict[str, Value] = Field(default_factory=dict, description="Values of its $names.")
    store: str | None = Field(default=None, description="A store by name; the first that is served where left out.")
    format: Form | None = Field(default=None, description="Else what Accept says.")
    max_rows: int | None = Field(default=None, ge=1, description="Rows at most.")


class Told(BaseModel):
    """What went wrong (RFC 9457)."""

    type: str = Field(description="The address of what the problem means.")
    title: str
    status: int
    detail: str
    found: str | None = Field(default=None, description="What was met.")
    expected: str | None = Field(default=None, description="What should have been there.")
    remedy: str | None = Field(default=None, description="What to do.")


class Meaning(BaseModel):
    """A kind of problem."""

    type: str
    status: int
    title: str


class Column(BaseModel):
    """A column of an answer; `type` is Arrow's."""

    name: str
    type: str


class Rows(BaseModel):
    """An answer as JSON. Rows are lists in the order of `columns`; what is no number is null."""

    columns: list[Column]
    rows: list[list[Any]]
    truncated: bool = Field(description="Whether rows were left out.")
    snapshot: str = Field(description="The content hash of the store.")
    elapsed_ms: float = Field(description="Time in the worker that made the answer.")
    cite: dict[str, Any] = Field(description="What identifies the answer.")


class Map(BaseModel):
    """One map as JSON: `weights` [query, key], null where there is none."""

    example: int
    name: str
    kind: str
    layer: int
    head: int
    level: str
    of: str = Field(description="What the weights are: attention, norm, …")
    queries: list[str]
    keys: list[str]
    weights: list[list[float | None]]
    truncated: Literal[False] = False
    snapshot: str
    cite: dict[str, Any]


class Size(BaseModel):
    """Layers and heads of a kind of attention."""

    layers: int
    heads: int


class About(BaseModel):
    """A store."""

    model_config = ConfigDict(extra="allow")

    name: str
    title: str
    model: str
    store_id: str
    snapshot: int = Field(description="The number of the snapshot.")
    content_hash: str = Field(description="What names the snapshot in every answer.")
    licence: str | None
    kinds: dict[str, Size]
    evidence: list[str]
    files: str = Field(description="The address of its files.")
    page: str


class Tables(BaseModel):
    """The tables of a store: for each its columns with their types."""

    store: str
    snapshot: str
    tables: dict[str, dict[str, str]]


class Evidence(BaseModel):
    """What a store keeps that only the model could give."""

    store: str
    snapshot: str
    additions: list[dict[str, Any]]


class Param(BaseModel):
    """A parameter of a question."""

    name: str
    type: str
    required: bool
    default: Value
    allowed: str


class Meant(BaseModel):
    """A column that a question returns and what it holds."""

    name: str
    about: str


class Described(BaseModel):
    """A question; `stores` is of how many it is asked."""

    name: str
    help: str
    stores: Literal[1, 2]
    params: list[Param]
    columns: list[Meant]
    source: str


class Running(BaseModel):
    """What runs, what a request may cost, what is served."""

    versions: dict[str, str]
    limits: dict[str, int | float]
    stores: list[str]


class Fine(BaseModel):
    """All is well."""

    status: Literal["ok"]


class Entry(BaseModel):
    """A file."""

    bytes: int
    sha256: str


class Listing(BaseModel):
    """The files of a snapshot by their paths; `snapshot` is its number."""

    content_hash: str
    snapshot: int
    files: dict[str, Entry]


_ALWAYS = ("bad-parameter", "unauthorised", "cross-origin", "wrong-host", "too-large", "internal")
_ASKED = ("not-found", "not-stored", "timeout", "memory", "busy", "damaged", "not-installed", "refused", "bad-sql")


def problems(*kinds: str) -> Responses:
    """The problems that an address may tell of: these, and those that every one may."""
    found: Responses = {}
    for kind in (*_ALWAYS, *kinds):
        status, title = KINDS[kind]
        told = found.setdefault(status, {"description": "", "content": PROBLEM})
        told["description"] = "; ".join(filter(None, (told["description"], f"{kind}: {title}")))
    return found


PROBLEM = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Told"}}}
_BYTES = {"schema": {"type": "string", "format": "binary"}}
_CONTENT = {TYPES["json"]: {"schema": {"$ref": "#/components/schemas/Rows"}}}
_CONTENT |= {TYPES["csv"].partition(";")[0]: {"schema": {"type": "string"}}, TYPES["arrow"]: _BYTES}
HEADERS = {
    "attnstore-snapshot": {"description": "The content hash of the store.", "schema": {"type": "string"}},
    "attnstore-truncated": {
        "description": "Whether rows were left out.",
        "schema": {"type": "string", "enum": ["true", "false"]},
    },
    "attnstore-rows": {"description": "How many rows there are.", "schema": {"type": "string"}},
    "attnstore-cite": {"description": "What identifies the answer: JSON in base64.", "schema": {"type": "string"}},
}

ANSWER: Responses = {
    200: {"description": "The rows, as JSON, CSV or Arrow IPC stream.", "content": _CONTENT, "headers": HEADERS},
    **problems(*_ASKED, "not-acceptable"),
}
NOT_CHANGED: Responses = {304: {"description": "The answer is the one whose ETag If-None-Match gave."}}
MAP: Responses = {
    200: {
        "description": "The map as JSON with labels, or as NumPy's .npy in float32.",
        "content": {TYPES["json"]: {"schema": {"$ref": "#/components/schemas/Map"}}, NPY: _BYTES},
        "headers": {name: said for name, said in HEADERS.items() if name != "attnstore-rows"},
    },
    **problems(*_ASKED, "not-acceptable"),
}
FILE: Responses = {
    200: {"description": "The file.", "content": {"application/octet-stream": _BYTES}},
    206: {"description": "The bytes that Range names.", "content": {"application/octet-stream": _BYTES}},
    304: {"description": "The file is the one whose ETag If-None-Match gave."},
    **problems("not-found", "bad-range", "damaged"),
}
BARE = (Rows, Map, Told)
"""Shapes that are named in contents alone, so that FastAPI does not find them by itself."""
