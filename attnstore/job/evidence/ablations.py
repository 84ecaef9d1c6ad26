"""This file runs plans of ablations part by part: what the task says of each set of heads, and the scores of sets.

A part of predictions holds some sets over one segment, a part of a plan the sets that it tried and their scores. What
comes next is decided by what was published, so that an interrupted plan goes on where it stopped, and a set that is
there already is not run again, whichever plan asked for it.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import partial

import pyarrow.parquet as pq

from attnstore.capture.evidence.ablate import Ablations, Head, Intervention, Means, given_means, mean_outputs
from attnstore.errors import BadInput
from attnstore.format import names
from attnstore.format.commit import commit
from attnstore.job.evidence.head_sets import HeadSet, every_head, read_heads
from attnstore.job.evidence.lab import Lab
from attnstore.job.evidence.metrics import Values, checked_metric, goodness
from attnstore.job.evidence.part import Output, Part
from attnstore.job.evidence.predictions import WHOLE, prediction_rows
from attnstore.job.rows import Placed
from attnstore.store.store import open as open_store

TOGETHER = 32
"""Sets of one part: each part runs the model as it is once more, and is lost if the run is stopped in it."""

_FOLDER = f"{names.ADDITIONS}/ablations."


def check_ablations(lab: Lab) -> None:
    """BadInput for a metric that the task lacks, heads that the model lacks, and labels that are missing or unfit."""
    keys, kinds = lab.recipe.ablations, lab.info.kinds
    assert lab.task is not None, "a recipe without a task asks for no ablations"
    checked_metric(lab.recipe.task.kind, lab.task, keys.metric)
    heads = len(every_head(kinds)) if keys.is_ranked else len(read_heads(keys.order, kinds))
    if "pruning" in keys.plan and max(keys.steps, default=0) > heads:
        raise BadInput("reading ablations.steps", str(max(keys.steps)), f"at most {heads}, the heads to prune")
    if keys.order == ("importance",) and "importance" not in lab.recipe.keep.evidence:
        remedy = 'Add "importance" to keep.evidence; what is there already is not computed again'
        raise BadInput('reading ablations.order = "importance"', "no importance", "heads with an importance", remedy)


def ablations(lab: Lab, there: Set[str]) -> Iterator[Part]:
    """Every part that is left of the plans of `[ablations]`; each is published before the next is asked for."""
    keys, run = lab.recipe.ablations, _Run(lab, there)
    if "mean" in keys.intervention:
        yield from run.averaged()
    kinds = lab.info.kinds
    singles = [[head] for head in every_head(kinds)]
    layers = [
        [(kind, layer, head) for head in range(own.heads)] for kind, own in kinds.items() for layer in range(own.layers)
    ]
    wanted = {"heads": singles, "layers": layers}
    plans = [plan for plan in wanted if plan in keys.plan or (plan == "heads" and run.orders_by_delta)]
    yield from run.evaluated(run.sets(head for plan in plans for head in wanted[plan]))
    for plan in plans:
        for intervention in keys.intervention:
            sets = [HeadSet.of(intervention, heads, kinds) for heads in wanted[plan]]
            yield from run.recorded(plan, [(one, None, None) for one in sets])
    if "pruning" in keys.plan:
        yield from run.pruned()
    if "greedy" in keys.plan:
        yield from run.searched("greedy", 1)
    if "beam" in keys.plan:
        yield from run.searched("beam", keys.width)


Tried = tuple[HeadSet, int | None, bool | None]
"""A set, the step at which a plan tried it, and whether the search went on from it."""


class _Run:
    """What is there of the ablations of a store, and how more is made."""

    def __init__(self, lab: Lab, there: Set[str]) -> None:
        assert lab.task is not None
        self.lab, self.task, self.there = lab, lab.task, set(there)
        self.keys, self.kinds = lab.recipe.ablations, lab.info.kinds
        self.metric = checked_metric(lab.recipe.task.kind, lab.task, self.keys.metric)
        self.means: Means = {}
        self.done: dict[int, set[str]] = {number: set() for number in range(len(lab.info.segments))}
        self.listed: set[str] = set()
        for name in there:
            if (sets := self._column(name, "predictions")) is not None:
                self.done[int(name.partition("-")[0])] |= sets
            self.listed |= self._column(name, "head_scores") or set()

    def _column(self, part: str, table: str) -> set[str] | None:
        """The head sets in a table of a part; None where the part has no such table."""
        path = self.lab.root / f"{_FOLDER}{part}" / names.parquet_name(table)
        return set(pq.read_table(path, columns=["head_set"])["head_set"].to_pylist()) if path.exists() else None

    @property
    def orders_by_delta(self) -> bool:
        """Whether pruning needs the scores of single heads."""
        return "pruning" in self.keys.plan and self.keys.order == ("delta",)

    def sets(self, every: Iterable[Sequence[Head]]) -> list[HeadSet]:
        """These heads under each intervention, set by set."""
        return [HeadSet.of(one, heads, self.kinds) for heads in every for one in self.keys.intervention]

    def averaged(self) -> Iterator[Part]:
        """Mean outputs of all heads over the whole corpus, published so that a resumed run takes the same."""
        if "means" not in self.there:
            yield Part("part", "means", self.lab.info.n_examples, self._average)
        path = self.lab.root / f"{_FOLDER}means" / names.parquet_name("mean_outputs")
        rows: dict[tuple[str, int], list[list[float]]] = {}
        for row in pq.read_table(path).to_pylist():  # in order of layers and heads
            rows.setdefault((row["kind"], row["layer"]), []).append(row["mean_output"])
        self.means = given_means(self.lab.instrument, rows)

    def _average(self, output: Output) -> None:
        lab = self.lab
        means, counts = mean_outputs(
            lab.instrument,
            (
                self.task.inputs(lab.items(batch), lab.inputs(batch))
                for _, placed in lab.placed(list(self.done))
                for batch in lab.batches(placed)
            ),
        )
        rows = [
            {"kind": kind, "layer": layer, "head": head, "n": counts[kind], "mean_output": vector}
            for (kind, layer), heads in means.items()
            for head, vector in enumerate(heads.tolist())
        ]
        output.table("mean_outputs").append_rows(rows)

    def evaluated(self, sets: Sequence[HeadSet]) -> Iterator[Part]:
        """What the task says of each of these sets, for every segment that lacks it."""
        sets = list({one.text: one for one in sets if one.heads}.values())
        chunks = [sets[start : start + TOGETHER] for start in range(0, len(sets), TOGETHER)]
        left = {
            number: [own for chunk in chunks if (own := [one for one in chunk if one.text not in done])]
            for number, done in self.done.items()
        }
        for number, placed in self.lab.placed([number for number, own in left.items() if own]):
            for own in left[number]:
                name = f"{number:06d}-{_digest(one.text for one in own)}"
                yield Part("part", name, len(placed) * len(own), partial(self._fill, placed, own))
                self.done[number].update(one.text for one in own)

    def _fill(self, placed: Sequence[Placed], sets: Sequence[HeadSet], output: Output) -> None:
        for batch in self.lab.batches(placed):
            items = self.lab.items(batch)
            some = Ablations(self.lab.instrument, self.task, items, self.lab.inputs(batch))
            for one in sets:
                scored = some.scored(one.heads, one.intervention, self.means)
                output.table("predictions").append_rows(prediction_rows(self.lab, one.text, items, scored))

    def scores(self, sets: Iterable[HeadSet]) -> dict[str, dict[str, tuple[float | None, int]]]:
        """Value and count of every metric of these sets over all examples, by the text of the set."""
        commit(self.lab.root, self.lab.info.store_id)
        found: dict[str, dict[str, tuple[float | None, int]]] = {}
        with open_store(self.lab.root) as store:
            text = "select head_set, metric, value, n from set_scores where head_set in (select unnest($sets))"
            for row in store.sql(text, sets=[one.text for one in sets]).to_arrow().to_pylist():
                found.setdefault(row["head_set"], {})[row["metric"]] = (row["value"], row["n"])
        return found

    def values(self, sets: Iterable[HeadSet]) -> dict[str, Values]:
        """The same without the counts."""
        return {text: {metric: value for metric, (value, _) in own.items()} for text, own in self.scores(sets).items()}

    def recorded(
        self, plan: str, tried: Sequence[Tried], ranking: str | None = None, series: str | None = None
    ) -> Iterator[Part]:
        """The rows of head_sets of a plan, or of one step of it, and the scores of sets that have none yet.

        `series` tells several orders of pruning, and several searches, apart.
        """
        first = tried[0][0]
        metric = self.metric if ranking == "delta" or plan in ("greedy", "beam") else None
        rows = [
            {
                **one.row(self.kinds),
                "task": self.lab.recipe.task.kind,
                "plan": plan,
                "series": series,
                "ranking": ranking,
                "metric": metric,
                "step": step,
                "kept": kept,
            }
            for one, step, kept in tried
        ]
        name = f"{plan}-{first.intervention}-{_digest(map(repr, rows))}"
        if name in self.there:
            return
        yield Part("part", name, 0, partial(self._record, rows, [one for one, _, _ in tried]))
        self.listed |= {WHOLE, *(one.text for one, _, _ in tried)}

    def _record(self, rows: Sequence[Mapping[str, object]], sets: Sequence[HeadSet], output: Output) -> None:
        output.table("head_sets").append_rows(rows)
        whole = HeadSet.of("zero", (), self.kinds)
        new = {one.text: one for one in (whole, *sets) if one.text not in self.listed}
        found = self.scores(new.values())
        task = self.lab.recipe.task
        scores = [
            {
                "task": task.kind,
                "metric": metric,
                "intervention": one.intervention if one.heads else "none",
                "head_set": text,
                "value": value,
                "n": n,
                "seed": task.seed,
            }
            for text, one in new.items()
            for metric, (value, n) in sorted(found.get(text, {}).items())
        ]
        output.table("head_scores").append_rows(scores)

    def pruned(self) -> Iterator[Part]:
        """The first heads of an order off together, for each of the steps; which order that is was asked for."""
        ranking = self.keys.order[0] if self.keys.is_ranked else "given"
        for intervention in self.keys.intervention:
            order = self._order(intervention, ranking)
            tenths = [round(len(order) * tenth / 10) for tenth in range(1, 11)]
            every = range(1, len(order) + 1) if ranking == "given" else [step for step in tenths if step]
            steps = sorted({0, *(self.keys.steps or every)})
            sets = [HeadSet.of(intervention, order[:step], self.kinds) for step in steps]
            yield from self.evaluated(sets)
            by = {"delta": f"delta of {self.metric}", "given": " ".join(self.keys.order)}.get(ranking, ranking)
            tried: list[Tried] = [(one, step, None) for one, step in zip(sets, steps, strict=True)]
            yield from self.recorded("pruning", tried, ranking, by)

    def _order(self, intervention: Intervention, ranking: str) -> list[Head]:
        """The heads in the order in which they are pruned."""
        if ranking == "given":
            return read_heads(self.keys.order, self.kinds)
        heads = every_head(self.kinds)
        if ranking == "delta":
            single = {head: HeadSet.of(intervention, [head], self.kinds) for head in heads}
            values = self.values(single.values())
            return sorted(heads, key=lambda head: _worst_last(values.get(single[head].text, {}), self.metric))
        commit(self.lab.root, self.lab.info.store_id)
        with open_store(self.lab.root) as store:
            text = (
                "select kind, layer, head, avg(abs(importance)) as importance from stored.importance_facts group by all"
            )
            rows = store.sql(text).to_arrow().to_pylist()
        found = {(row["kind"], row["layer"], row["head"]): row["importance"] for row in rows}
        return sorted(heads, key=lambda head: found.get(head) or 0.0)

    def searched(self, plan: str, width: int) -> Iterator[Part]:
        """At each step every kept set with one head more; the best `width` are kept, ties by order of heads."""
        heads = every_head(self.kinds)
        for intervention in self.keys.intervention:
            kept = [HeadSet.of(intervention, (), self.kinds)]
            series = f"{plan} by {self.metric}" + (f", {width} wide" if plan == "beam" else "")
            yield from self.recorded(plan, [(kept[0], 0, True)], series=series)
            for step in range(1, min(self.keys.depth, len(heads)) + 1):
                grown = (
                    HeadSet.of(intervention, (*one.heads, head), self.kinds)
                    for one in kept
                    for head in heads
                    if head not in one.heads
                )
                tried = list({one.text: one for one in grown}.values())
                yield from self.evaluated(tried)
                values = self.values(tried)
                best = sorted(tried, key=lambda one: _worst_last(values.get(one.text, {}), self.metric))
                kept = best[:width]
                yield from self.recorded(plan, [(one, step, one in kept) for one in tried], series=series)


def _worst_last(values: Values, metric: str) -> tuple[float, float]:
    by_metric, by_loss = goodness(values, metric)
    return -by_metric, -by_loss


def _digest(texts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:12]
