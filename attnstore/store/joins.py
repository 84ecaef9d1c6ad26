"""This file narrows the virtual tables of a statement to the heads and examples that it joins them with.

DuckDB hands a virtual table the conditions that stand in a statement, and nothing of what it is joined with:
`attention join picked using (example)` would read every map. So what the tables are joined with is computed first,
and the tables are replaced by ones that lack the rows which could not match. A statement of which anything is not
understood stays as it is.

DuckDB takes a table of unknown size for one of a single row, and would hold all of its rows to look up those of the
small table in them. So a table that is joined comes with a size: a second part of so many rows, of which none is read.
"""

import re
from collections.abc import Iterator, Mapping

import duckdb
import numpy as np
import pyarrow as pa

from attnstore.store.beforehand import Beforehand, Scope, Unknown
from attnstore.store.from_clause import FromClause, Leaf, Seen, items
from attnstore.store.layout import CELL_COLUMNS, CELL_TYPES, Virtual, quoted
from attnstore.store.parse_tree import Node, nodes, parameters, parse, queries, select, table_names, text_of

_KEYS = ("kind", "layer", "head", "example")
_CELLS = frozenset(CELL_COLUMNS.names)
_MAP_ROWS = 1_000
"""Rows that a map is taken for where the size of a table is estimated."""
_ELSEWHERE = re.compile(
    r"\b(collate|now|today|(get_)?current_\w+|(transaction|statement|local)_?time\w*|txid_current)\b", re.IGNORECASE
)
"""What is not the same, or is lost, in a part that is computed in a statement of its own."""

_PARTS = ("from_table", "where_clause", "left", "right", "children")
"""Parts of a query in which other queries are looked for, beside the columns."""
_PURE = {"COLUMN_REF", "CONSTANT", "PARAMETER", "COMPARISON", "CONJUNCTION", "BETWEEN", "CAST"}
_PURE_OPERATORS = {"COMPARE_IN", "COMPARE_NOT_IN", "OPERATOR_NOT", "OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL"}
_PURE_FUNCTIONS = {
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "~~",
    "!~~",
    "~~*",
    "lower",
    "upper",
    "contains",
    "starts_with",
    "length",
}


def narrowed(
    cursor: duckdb.DuckDBPyConnection, text: str, params: Mapping[str, object], virtual: Mapping[str, Virtual]
) -> tuple[str, dict[str, object], dict[str, Virtual]] | None:
    """A statement with the same answer that reads less, its parameters, and the tables that it reads, by name.

    None where there is none. The tables are registered, and what was computed beforehand stays in temporary tables.
    """
    if _ELSEWHERE.search(text):
        return None
    try:
        tree = parse(cursor, text)
        if tree is None or not any(node.get("type") in ("JOIN", "SUBQUERY", "COMPARE_IN") for node in nodes(tree)):
            return None
        narrowing = _Narrowing(cursor, virtual, Beforehand(cursor, params, virtual))
        narrowing.query(tree["statements"][0]["node"], {})
        found = text_of(cursor, tree) if narrowing.tables else None
    except (Unknown, duckdb.Error, LookupError, TypeError, ValueError, RecursionError):
        return None
    used = parameters(tree)
    own = {name: value for name, value in params.items() if name in used}
    return None if found is None else (found, own, narrowing.tables)


class _Narrowing:
    """Changes the tree of one statement; `tables` are the narrowed ones by the names that stand in it."""

    def __init__(
        self, cursor: duckdb.DuckDBPyConnection, virtual: Mapping[str, Virtual], beforehand: Beforehand
    ) -> None:
        self._cursor, self._virtual, self._beforehand = cursor, virtual, beforehand
        self.tables: dict[str, Virtual] = {}

    def query(self, node: Node, outer: Scope) -> None:
        """Narrow the tables of a query, and of those inside it."""
        if node["type"] not in ("SELECT_NODE", "SET_OPERATION_NODE"):  # a recursive one reads itself
            return
        scope = dict(outer)
        for entry in node["cte_map"]["map"]:
            name = str(entry["key"]).lower()
            if name in self._virtual or name in scope:
                raise Unknown
            self.query(entry["value"]["query_node"], scope)
            scope[name] = entry
        if node["type"] == "SELECT_NODE":
            tables = FromClause(self._virtual, scope)
            tables.add(node["from_table"])
            names = [leaf.name for leaf in tables.every]
            if not node["sample"] and len(set(names)) == len(names):
                self._narrow(_Clauses(tables, tables.where(node["where_clause"]), scope, self._beforehand))
        # A column without a name is called by the text of its expression, which has to stay.
        named = [item for item in node.get("select_list", ()) if item["alias"]]
        for inner in queries([named, [node.get(part) for part in _PARTS]]):
            self.query(inner, scope)

    def _narrow(self, clauses: "_Clauses") -> None:
        for leaf in [leaf for leaf in clauses.tables.every if leaf.virtual]:
            table = self._virtual[str(leaf.virtual)]
            heads, examples = set(table.heads), None
            for limit in (*clauses.joined(leaf), *clauses.listed(leaf)) if leaf in clauses.tables.needed else ():
                names = [name for name in _KEYS[:3] if name in limit.column_names]
                wanted = set(zip(*(limit[name].to_pylist() for name in names), strict=True))
                at = [_KEYS.index(name) for name in names]
                heads = {head for head in heads if not names or tuple(head[index] for index in at) in wanted}
                if "example" in limit.column_names:
                    own = np.unique(limit["example"].drop_null().to_numpy().astype(np.int64))
                    examples = own if examples is None else np.intersect1d(examples, own)
            if len(heads) < len(table.heads) or examples is not None or clauses.is_joined:
                name, ref = f"{leaf.virtual} {len(self.tables) + 1}", leaf.ref
                self.tables[name] = table.only(frozenset(heads), examples)
                self._sized(name, self.tables[name].n_maps)
                alias = ref["alias"] or ref["table_name"]
                ref.update(alias=alias, table_name=f"{name} sized", qualified_name={"path": [f"{name} sized"]})

    def _sized(self, name: str, n_maps: int) -> None:
        """Make a view over a table that DuckDB takes for as large as so many maps are."""
        self._cursor.register(name, self.tables[name])
        nothing = ", ".join(f"null::{kind}" for kind in CELL_TYPES.values())
        # A limit that has to be computed leaves the estimate as it is.
        rows = f"select {nothing} from range({n_maps * _MAP_ROWS + 1}) limit (select 0)"
        view = f"create temp view {quoted(name + ' sized')} as from {quoted(name)} union all ({rows})"
        self._cursor.execute(view).fetchall()


class _Clauses:
    """FROM and WHERE of one SELECT: what they say of the rows of a virtual table."""

    def __init__(self, tables: FromClause, where: list[Seen], scope: Scope, beforehand: Beforehand) -> None:
        self.tables, self._scope, self._beforehand = tables, scope, beforehand
        self._conditions = [*tables.conditions, *where]
        self._known: dict[int, frozenset[str]] = {}

    @property
    def is_joined(self) -> bool:
        """Whether there is another table, or a subquery that takes the place of one."""
        return len(self.tables.every) > 1 or any("subquery_type" in condition for condition, _ in self._conditions)

    def joined(self, own: Leaf) -> Iterator[pa.Table]:
        """Keys [row] of each table that the virtual table `own` is joined with."""
        pairs: dict[str, dict[str, str | int]] = {}
        for name, left, right in self.tables.using:
            for one, other in ((left, right), (right, left)):
                if name in _KEYS and own in one:
                    for leaf in other:
                        if not leaf.virtual and name in self._columns(leaf):
                            pairs.setdefault(leaf.name, {})[name] = name
        for condition, seen in self._conditions:
            if condition["type"] == "COMPARE_EQUAL":
                left_side, right_side = (self._column(condition[side], seen) for side in ("left", "right"))
                for one_side, other_side in ((left_side, right_side), (right_side, left_side)):
                    if one_side and other_side and one_side[0] is own and not other_side[0].virtual:
                        pairs.setdefault(other_side[0].name, {})[one_side[1]] = other_side[1]
        for leaf in self.tables.every:
            columns = {name: at for name, at in pairs.get(leaf.name, {}).items() if name in _KEYS}
            if columns and (query := self._rows(leaf)) is not None:
                yield from self._keys(query, columns)

    def listed(self, own: Leaf) -> Iterator[pa.Table]:
        """Keys [row] of each subquery or list that columns of the virtual table `own` are said to be in."""
        for condition, seen in self._conditions:
            query = None
            if condition.get("subquery_type") == "ANY" and condition["comparison_type"] == "COMPARE_EQUAL":
                what, query = condition["child"], condition["subquery"]
            elif condition["type"] == "COMPARE_EQUAL" and condition["right"].get("subquery_type") == "SCALAR":
                what, query = condition["left"], condition["right"]["subquery"]
            elif condition["type"] == "COMPARE_IN":
                what = condition["children"][0]
            else:
                continue
            columns = [self._column(item, seen) for item in items(what)]
            chosen: dict[str, str | int] = {
                column[1]: index
                for index, column in enumerate(columns)
                if column and column[0] is own and column[1] in _KEYS
            }
            if chosen and query is not None:
                if (made := self._beforehand.computed(query["node"], self._scope)) is not None:
                    query["node"] = made
                    yield from self._keys(made, chosen)
            elif chosen and len(columns) > 1:  # a list of one column reaches the table without us
                rows = [[_whole_number(item) for item in items(row)] for row in condition["children"][1:]]
                if all(None not in row and len(row) == len(columns) for row in rows):
                    yield pa.table({name: [row[int(at)] for row in rows] for name, at in chosen.items()})

    def _rows(self, leaf: Leaf) -> Node | None:
        """A query for the rows of a table for which the conditions on it alone hold; None where it is not computed."""
        ref = leaf.ref
        if ref["type"] == "SUBQUERY" or table_names(ref) & self._scope.keys():
            made = self._beforehand.computed(select(ref), self._scope)
            if made is None:
                return None
            alias = ref["alias"] or ref.get("table_name", "")
            ref.clear()
            ref.update({**made["from_table"], "alias": alias})
        own = [condition for condition, seen in self._conditions if self._is_about(condition, leaf, seen)]
        every = {"class": "CONJUNCTION", "type": "CONJUNCTION_AND", "alias": "", "children": own}
        return select(ref, every if len(own) > 1 else own[0] if own else None)

    def _keys(self, query: Node, columns: Mapping[str, str | int]) -> Iterator[pa.Table]:
        table = self._beforehand.distinct(query, columns)
        if table is not None and all(_fits(field) for field in table.schema):
            yield table

    def _column(self, item: Node, seen: list[Leaf]) -> tuple[Leaf, str] | None:
        """The table, of those seen, and the column that an expression is; None unless the table must match."""
        if item.get("class") != "COLUMN_REF" or len(item["column_names"]) > 2:
            return None
        *qualifier, column = (str(part).lower() for part in item["column_names"])
        if qualifier:
            holding = [leaf for leaf in seen if leaf.name == qualifier[0]]
        else:
            holding = [leaf for leaf in seen if column in self._columns(leaf)]
            # A column of USING is the same in all of its tables.
            merged = [leaf for name, *sides in self.tables.using for side in sides for leaf in side if name == column]
            if all(leaf in merged for leaf in holding):
                holding = [leaf for leaf in holding if leaf.virtual][:1]
        is_known = len(holding) == 1 and holding[0] in (*self.tables.needed, *self.tables.asked)
        return (holding[0], column) if is_known else None

    def _is_about(self, condition: Node, leaf: Leaf, seen: list[Leaf]) -> bool:
        """Whether a condition speaks of one table alone, and says the same whenever it is computed."""
        parts = [node for node in nodes(condition) if "class" in node]
        if not all(
            part["class"] in _PURE
            or part["type"] in _PURE_OPERATORS
            or (part["class"] == "FUNCTION" and part["function_name"] in _PURE_FUNCTIONS)
            for part in parts
        ):
            return False
        columns = [self._column(part, seen) for part in parts if part["class"] == "COLUMN_REF"]
        return bool(columns) and all(column is not None and column[0] is leaf for column in columns)

    def _columns(self, leaf: Leaf) -> frozenset[str]:
        if leaf.virtual:
            return _CELLS
        if not leaf.plain:
            raise Unknown
        if id(leaf) not in self._known:
            self._known[id(leaf)] = self._beforehand.columns(leaf.ref, self._scope)
        return self._known[id(leaf)]


def _fits(field: pa.Field) -> bool:
    # Numbers of other types would be rounded, or text read as a number.
    return bool(pa.types.is_string(field.type) if field.name == "kind" else pa.types.is_integer(field.type))


def _whole_number(expression: Node) -> int | None:
    literal = expression.get("literal") or {}
    return int(literal["text"]) if literal.get("kind") == "INTEGER" else None
