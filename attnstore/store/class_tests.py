"""This file tests whether heads differ between the classes of examples, as the heads of a vision model may."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from attnstore.errors import BadInput
from attnstore.format.fact_tables import MADE
from attnstore.reduce.ranks import auroc, eta_squared, false_discovery, kruskal, permuted, ranks
from attnstore.store.fact import Reading

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_VALUES = """
    select
        f.kind, f.layer, f.head, f.example, e.label, e.luminance,
        coalesce('d' || e.document, 'p' || e.pair_id, 'e' || e.example) as whole,
        {value} as value
    from {rows} as f
    join examples as e using (example)
    where e.label is not null
    order by f.kind, f.layer, f.head, f.example
"""

_AT_CLS = """
    (
        select o.* from output_norms as o
        join tokens as t on t.example = o.example and t.side = o.side and t.token = o.token
        where t.special = 'cls'
    )
"""
_SWITCHED_OFF = """
    (
        select s.kind, s.layer, s.head, p.example, p.loss - b.loss as loss
        from (
            select distinct head_set, kind, layer, head from head_sets where size = 1 and intervention = 'zero'
        ) as s
        join predictions as p using (head_set)
        join predictions as b on b.head_set = 'none' and b.task = p.task and b.example = p.example
    )
"""

STATISTICS = {
    name: Reading(
        table,
        _VALUES.format(rows={"output_norm": _AT_CLS, "ablation_loss": _SWITCHED_OFF}.get(name, table), value=value),
    )
    for name, table, value in (
        ("cls_entropy", "head_facts", "f.cls_entropy_sum / nullif(f.n_cls, 0)"),
        ("entropy", "head_facts", "f.entropy_sum / f.n_queries"),
        ("confidence", "head_facts", "f.max_sum / f.n_queries"),
        ("cls", "head_facts", "f.cls_sum / f.n_queries"),
        ("distance", "head_facts", "f.distance_sum / f.n_queries"),
        ("grid_distance", "grid_facts", "f.distance_sum / nullif(f.n_queries, 0)"),
        ("output_norm", "output_norms", "f.output_norm"),
        ("logit_contribution", "logit_contributions", "f.true_class"),
        ("ablation_loss", "predictions", "f.loss"),
    )
}
"""What may be compared between classes: the table that holds it, and rows with a value for each example and head.

The last three are evidence from the model: the length of what a head adds at [CLS], what it adds to the logit of the
true class, and how much the loss of the example grows when it is switched off (set to zero).
"""


class _Values(NamedTuple):
    """One kind: `values` [head, example] of `heads` [head, layer and head]; `label`, `luminance`, `whole` [example]."""

    kind: str
    heads: NDArray[np.int64]
    values: Floats
    label: NDArray[np.str_]
    luminance: Floats
    whole: NDArray[np.str_]

    @property
    def classes(self) -> tuple[list[str], Bools]:
        """The names of the classes, and who belongs to them [class, example]."""
        names = sorted(set(self.label.tolist()))
        return names, np.array([self.label == name for name in names]).reshape(len(names), len(self.label))


def class_tests(table: pa.Table, *, control: str, permutations: int, seed: int) -> pa.Table:
    """For each head: does the statistic differ between classes, and which class does it tell from the others?

    Eta squared and Kruskal-Wallis' H are of all examples, p is by shuffling labels, q is p after Benjamini and Hochberg
    over the heads of a kind. Class and direction are chosen on one half of the examples and scored on the other;
    halves hold of each class as many, and a document or pair stays whole. `control`: "shuffled" gives every example the
    label of another, "luminance" takes out what a straight line over the mean luminance explains; examples without one
    are left out then. No rows where there are fewer than two classes. BadInput for fewer than 1 permutations, a
    negative seed.
    """
    if permutations < 1 or seed < 0:
        raise BadInput("comparing classes", f"permutations={permutations}, seed={seed}", "1 or more, and 0 or more")
    found = []
    for one in map(_regressed if control == "luminance" else _same, _by_kind(table)):
        draw = np.random.default_rng(seed)
        own = one._replace(label=draw.permutation(one.label)) if control == "shuffled" else one
        names, member = own.classes
        if len(names) < 2:
            continue
        ranked = ranks(own.values)
        p = permuted(ranked, member, draw, permutations)
        best, higher, area = _told_apart(own, member, draw)
        columns = {
            **_keys(own),
            "eta2": eta_squared(own.values, member),
            "eta2_chance": np.full(len(p), (len(names) - 1) / (len(own.label) - 1)),
            "h": kruskal(ranked, member),
            "p": p,
            "q": false_discovery(p),
            "best_class": np.array([*names, None], object)[best],
            "direction": np.array(["higher", "lower", None], object)[np.where(best < 0, 2, ~higher)],
            "auroc": area,
            "n": np.full(len(p), len(own.label)),
            "n_classes": np.full(len(p), len(names)),
        }
        found.append(_table(columns, MADE["class_tests"]))
    return pa.concat_tables([MADE["class_tests"].empty_table(), *found])


def class_profiles(table: pa.Table) -> pa.Table:
    """For each head and class the mean of the statistic, and how many deviations it lies from the mean of all."""
    found = []
    for one in _by_kind(table):
        names, member = one.classes
        mean = one.values @ member.T / member.sum(axis=1)
        deviation = np.where(np.ptp(one.values, axis=1) > 0, one.values.std(axis=1), np.nan)[:, None]
        d = (mean - one.values.mean(axis=1, keepdims=True)) / deviation
        columns = {
            **{name: np.repeat(column, len(names)) for name, column in _keys(one).items()},
            "class": np.tile(np.array(names, object), len(mean)),
            "mean": mean.ravel(),
            "d": d.ravel(),
            "n": np.tile(member.sum(axis=1), len(mean)),
        }
        found.append(_table(columns, MADE["class_profiles"]))
    return pa.concat_tables([MADE["class_profiles"].empty_table(), *found])


def _by_kind(table: pa.Table) -> Iterator[_Values]:
    """The values of each kind, without the examples in which a head has none."""
    for kind in sorted(set(table["kind"].to_pylist())):
        own = table.filter(pa.array([name == kind for name in table["kind"].to_pylist()]))
        pairs = np.stack([own["layer"].to_numpy(), own["head"].to_numpy()], axis=1).astype(np.int64)
        heads, row = np.unique(pairs, axis=0, return_inverse=True)
        example = own["example"].to_numpy()
        _, index, place = np.unique(example, return_index=True, return_inverse=True)
        first = own.take(index)
        values = np.full((len(heads), len(index)), np.nan)
        values[row, place] = own["value"].to_numpy()
        there = ~np.isnan(values).any(axis=0)
        if there.any():
            yield _Values(
                kind,
                heads,
                values[:, there],
                np.array(first["label"].to_pylist())[there],
                first["luminance"].to_numpy().astype(np.float64)[there],
                np.array(first["whole"].to_pylist())[there],
            )


def _same(one: _Values) -> _Values:
    return one


def _regressed(one: _Values) -> _Values:
    """What a straight line over the luminance leaves of the values."""
    there = ~np.isnan(one.luminance)
    light, values = one.luminance[there], one.values[:, there]
    light = light - light.mean() if len(light) else light
    slope = values @ light / max(float(light @ light), np.finfo(float).tiny)
    # What is left of a constant is rounding error.
    left = (
        np.where(np.ptp(values, axis=1, keepdims=True) > 0, values - np.outer(slope, light), 0)
        if len(light)
        else values
    )
    return one._replace(values=left, label=one.label[there], luminance=one.luminance[there], whole=one.whole[there])


def _told_apart(one: _Values, member: Bools, draw: np.random.Generator) -> tuple[NDArray[np.intp], Bools, Floats]:
    """By head: the class that one half tells best (-1: none), whether it lies higher, and its area in the other."""
    chosen = _half(one, draw)
    areas = auroc(ranks(one.values[:, chosen]), member[:, chosen]) - 0.5
    told = np.where(np.isnan(areas), -1, np.abs(areas))
    best = told.argmax(axis=1)
    at = (np.arange(len(best)), best)
    higher = areas[at] >= 0
    other = auroc(ranks(one.values[:, ~chosen]), member[:, ~chosen])[at]
    none = (told[at] <= 0) | np.isnan(other)
    return np.where(none, -1, best), higher, np.where(none, np.nan, np.where(higher, other, 1 - other))


def _half(one: _Values, draw: np.random.Generator) -> Bools:
    """Which examples choose: of every class as many as score, drawn at random, documents and pairs whole."""
    _, first, place = np.unique(one.whole, return_index=True, return_inverse=True)
    order = np.lexsort((draw.random(len(first)), one.label[first]))
    turn = np.empty(len(first), bool)
    turn[order] = np.arange(len(first)) % 2 == 0
    return turn[place]


def _keys(one: _Values) -> dict[str, NDArray[np.generic]]:
    kind = np.full(len(one.heads), one.kind, object)
    return {"kind": kind, "layer": one.heads[:, 0], "head": one.heads[:, 1]}


def _table(columns: dict[str, NDArray[np.generic]], schema: pa.Schema) -> pa.Table:
    """The columns as a table; NaN becomes null."""
    return pa.table({name: pa.array(column, from_pandas=True) for name, column in columns.items()}).cast(schema)
