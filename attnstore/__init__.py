"""Run a transformer over a corpus once; keep its attention maps; ask them anything afterwards, in SQL.

Importing this loads nothing else: each name below loads its part when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from attnstore.errors import AttnStoreError
    from attnstore.format.verify import verify
    from attnstore.job.plan import Plan
    from attnstore.job.recipe import Recipe
    from attnstore.job.run import estimate, ingest
    from attnstore.store.attention_map import AttentionMap
    from attnstore.store.comparison import Comparison, compare
    from attnstore.store.result import Result
    from attnstore.store.store import Store
    from attnstore.store.store import open as open  # noqa: A004 - `attnstore.open` reads as it should

__version__ = "0.1.0"

__all__ = [
    "AttentionMap",
    "AttnStoreError",
    "Comparison",
    "Plan",
    "Recipe",
    "Result",
    "Store",
    "compare",
    "estimate",
    "ingest",
    "open",
    "verify",
]

_PLACES = {
    "AttentionMap": "attnstore.store.attention_map",
    "AttnStoreError": "attnstore.errors",
    "Comparison": "attnstore.store.comparison",
    "Plan": "attnstore.job.plan",
    "Recipe": "attnstore.job.recipe",
    "Result": "attnstore.store.result",
    "Store": "attnstore.store.store",
    "compare": "attnstore.store.comparison",
    "estimate": "attnstore.job.run",
    "ingest": "attnstore.job.run",
    "open": "attnstore.store.store",
    "verify": "attnstore.format.verify",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'attnstore' has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
