"""This file loads the packages that only some ways out of a result need."""

import importlib
from typing import Any

from attnstore.errors import MissingExtra

_EXTRAS = {
    **{"matplotlib": "plot", "pandas": "frames", "polars": "frames", "xarray": "frames"},
    **{"scikit-learn": "analysis", "scipy": "analysis"},
}


def optional(package: str, doing: str, *, module: str | None = None) -> Any:
    """The module of an optional package; MissingExtra with the install command where it is absent."""
    try:
        return importlib.import_module(module or package)
    except ImportError:
        raise MissingExtra(doing, package, _EXTRAS[package]) from None
