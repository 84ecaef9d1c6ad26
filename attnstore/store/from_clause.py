"""This file finds the tables of a FROM clause, and which of them must match for a row of the result to be there."""

from collections.abc import Collection
from dataclasses import dataclass, field

from attnstore.store.parse_tree import Node, is_qualified


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """A table in FROM under the name that its columns are qualified with, or a subquery.

    `virtual` names the virtual table that it is. `plain` where nothing is said of it but an alias.
    """

    ref: Node
    name: str
    virtual: str | None
    plain: bool


Seen = tuple[Node, list[Leaf]]
"""A condition, and the tables whose columns it may name."""


@dataclass(slots=True)
class FromClause:
    """The tables of a FROM clause.

    `needed` are those without a matching row of which there is no row of the result; `asked` those that a semi join
    looks up. `conditions`, each with the tables that it sees, and `using` (a column and the tables on both sides) hold
    for them. `hidden` are the tables that nothing above their join sees: another of that name may lie further out.
    """

    virtual: Collection[str]
    expressions: Collection[str]
    every: list[Leaf] = field(default_factory=list)
    needed: list[Leaf] = field(default_factory=list)
    asked: list[Leaf] = field(default_factory=list)
    conditions: list[Seen] = field(default_factory=list)
    hidden: list[Leaf] = field(default_factory=list)
    using: list[tuple[str, list[Leaf], list[Leaf]]] = field(default_factory=list)

    def add(self, ref: Node, *, needed: bool = True) -> list[Leaf]:
        """Note what lies below a node; the needed tables there. `expressions` hide tables of their name."""
        if ref["type"] == "EMPTY":
            return []
        if ref["type"] != "JOIN":
            leaf = self._leaf(ref)
            self.every.append(leaf)
            self.needed += [leaf] * (needed and leaf.plain)
            return [leaf] if needed and leaf.plain else []
        first = len(self.every)
        # Of other kinds of joins nothing is known but their tables.
        how = ref["join_type"] if ref["ref_type"] in ("REGULAR", "CROSS") and not ref["sample"] else ""
        left = self.add(ref["left"], needed=needed and how in ("INNER", "SEMI", "LEFT", "ANTI"))
        between = len(self.every)
        right = self.add(ref["right"], needed=needed and how == "INNER")
        seen = self._visible(self.every[first:])
        if ref["join_type"] in ("SEMI", "ANTI"):
            self.hidden += self.every[between:]
        if not needed or how not in ("INNER", "SEMI"):
            return left
        if how == "SEMI":
            right = [leaf for leaf in self.every if leaf.ref is ref["right"] and leaf.plain]
            self.asked += right
        self.using += [(str(name).lower(), left, right) for name in ref["using_columns"]]
        self.conditions += [(condition, seen) for condition in conjuncts(ref["condition"])]
        return [*left, *right] if how == "INNER" else left

    def where(self, condition: Node | None) -> list[Seen]:
        """The conditions of WHERE, with the tables that they see."""
        return [(part, self._visible(self.every)) for part in conjuncts(condition)]

    def _visible(self, leaves: list[Leaf]) -> list[Leaf]:
        return [leaf for leaf in leaves if leaf not in self.hidden]

    def _leaf(self, ref: Node) -> Leaf:
        table = str(ref.get("table_name", ""))
        plain = ref["type"] in ("BASE_TABLE", "SUBQUERY") and not ref.get("sample") and not ref.get("at_clause")
        is_virtual = ref["type"] == "BASE_TABLE" and not is_qualified(ref) and table.lower() in self.virtual
        is_virtual = is_virtual and table.lower() not in self.expressions
        if is_virtual and ref["column_name_alias"]:
            is_virtual = plain = False
        name = str(ref.get("alias") or table or id(ref)).lower()
        return Leaf(ref, name, table.lower() if is_virtual and plain else None, plain)


def conjuncts(condition: Node | None) -> list[Node]:
    """The conditions that all hold where this one does; none for None."""
    if condition is None:
        return []
    if condition["type"] == "CONJUNCTION_AND":
        return [part for child in condition["children"] for part in conjuncts(child)]
    return [condition]


def items(expression: Node) -> list[Node]:
    """The parts of a row, `(layer, head)`, or the expression itself."""
    if expression.get("function_name") == "row":
        return [argument["expression"] for argument in expression["arguments"]]
    return [expression]
