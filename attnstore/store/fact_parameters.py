"""This file checks the parameters with which a caller wants a fact table."""

from collections.abc import Mapping

from attnstore.catalogue.values import Type, convert
from attnstore.errors import BadInput, NotFound
from attnstore.store.fact import CHOOSING, WEIGHTS
from attnstore.store.facts import FACTS

_TYPES: Mapping[type, Type] = {bool: "boolean", int: "integer", float: "real", str: "text"}


def fact_parameters(
    table: str, given: Mapping[str, object], stored: Mapping[str, object], doing: str
) -> dict[str, object]:
    """Every parameter of a fact table of all examples: as given, else as stored, else its default.

    NotFound for an unknown table, BadInput for an unknown parameter, a value of another type, or a table that holds
    chosen examples only.
    """
    if table not in FACTS:
        raise NotFound(doing, "there are no such facts", f"one of {', '.join(sorted(FACTS))}")
    defaults = FACTS[table].defaults
    if "example" in defaults:
        raise BadInput(doing, f"{table} is about one example", "facts of the whole store")
    known = {name: value for name, value in defaults.items() if name not in (*CHOOSING, WEIGHTS)}
    for name, value in given.items():
        if name not in known:
            raise BadInput(doing, f"there is no parameter {name!r}", f"one of {', '.join(known)}" if known else "none")
        try:
            known[name] = convert(value, _TYPES[type(known[name])])
        except ValueError as error:
            raise BadInput(doing, f"{name}={value!r}", str(error)) from error
    every = {"sample": 0} if "sample" in defaults else {}
    return {**known, **{name: value for name, value in stored.items() if name in known and name not in given}, **every}
