"""This file switches heads off: what they hand to W_O is replaced, and only what comes after is computed anew."""

from collections.abc import Collection, Iterable, Mapping, Sequence

import torch
from torch import Tensor

from attnstore.capture.circuits import Circuit
from attnstore.capture.instrument import Inputs, Instrument, Watch, real_tokens
from attnstore.capture.tasks import Item, Scored, Task, scored_pass

Head = tuple[str, int, int]
"""(kind, layer, head), from 0."""

Intervention = str
"""zero, uniform or mean."""

Means = Mapping[tuple[str, int], Tensor]
"""(kind, layer) -> mean output of each head [head, item]."""


class Ablation(Watch):
    """Replaces the outputs of some heads: by nothing, by the mean of their values over real keys, or by `means`.

    Real keys are those that are no padding, for causal maps those up to the query's own place.
    """

    def __init__(
        self,
        instrument: Instrument,
        inputs: Inputs,
        heads: Collection[Head],
        intervention: Intervention,
        means: Means | None = None,
    ) -> None:
        self.kinds, self.inputs, self.intervention = instrument.captor.facts.kinds, inputs, intervention
        self.means = means or {}
        self.heads_of: dict[tuple[str, int], Tensor] = {}
        for kind, layer in {(kind, layer) for kind, layer, _ in heads}:
            own = sorted(head for of, at, head in heads if (of, at) == (kind, layer))
            self.heads_of[kind, layer] = torch.tensor(own, device=instrument.model.device)
        self._mean_value: Tensor | None = None

    def wants(self, circuit: Circuit) -> bool:
        return self.intervention == "uniform" and (circuit.kind, circuit.layer) in self.heads_of

    def values(self, circuit: Circuit, values: Tensor) -> None:
        if not self.wants(circuit):
            return
        kind = self.kinds[circuit.kind]
        is_real = real_tokens(self.inputs, kind.keys, values.shape[2])[:, None, :, None].to(values.dtype)
        own = values[:, self.heads_of[circuit.kind, circuit.layer]] * is_real
        if kind.causal:
            self._mean_value = own.cumsum(2) / is_real.cumsum(2).clamp(min=1)
        else:
            self._mean_value = own.sum(2, keepdim=True) / is_real.sum(2, keepdim=True)

    def heads(self, circuit: Circuit, outputs: Tensor) -> Tensor | None:
        own = self.heads_of.get((circuit.kind, circuit.layer))
        if own is None:
            return None
        changed = outputs.clone()
        if self.intervention == "zero":
            changed[:, own] = 0.0
        elif self.intervention == "uniform":
            assert self._mean_value is not None, "values come before heads"
            changed[:, own] = self._mean_value.expand(-1, -1, outputs.shape[2], -1)
        else:
            changed[:, own] = self.means[circuit.kind, circuit.layer][own][:, None]
        return changed


class Ablations:
    """One batch, of which many head sets are switched off in turn: layers below a set's lowest are computed once."""

    def __init__(self, instrument: Instrument, task: Task, batch: Collection[Item], inputs: Inputs) -> None:
        self.instrument, self.task, self.items = instrument, task, list(batch)
        self.inputs = task.inputs(self.items, inputs)
        with instrument.blocks.keep():
            self.whole: Scored = scored_pass(instrument, task, self.items, self.inputs)
        self._place = {(one.kind, one.layer): place for place, one in enumerate(instrument.circuits)}

    def scored(self, heads: Collection[Head], intervention: Intervention, means: Means | None = None) -> Scored:
        """What the task says while these heads are off; without any, what it says of the model as it is."""
        if not heads:
            return self.whole
        lowest = min(self._place[kind, layer] for kind, layer, _ in heads)
        watch = Ablation(self.instrument, self.inputs, heads, intervention, means)
        start = self.instrument.blocks.of(lowest)
        return scored_pass(self.instrument, self.task, self.items, self.inputs, watch, start=start)


def given_means(instrument: Instrument, rows: Mapping[tuple[str, int], Sequence[Sequence[float]]]) -> Means:
    """Means that were found before [head, item], on the model's device."""
    return {place: torch.tensor(heads, device=instrument.model.device) for place, heads in rows.items()}


class _Sums(Watch):
    def __init__(self, instrument: Instrument) -> None:
        self.kinds = instrument.captor.facts.kinds
        self.inputs: Inputs = {}
        self.sums: dict[tuple[str, int], Tensor] = {}
        self.counts: dict[str, int] = {}

    def wants(self, circuit: Circuit) -> bool:
        return False

    def heads(self, circuit: Circuit, outputs: Tensor) -> None:
        is_real = real_tokens(self.inputs, self.kinds[circuit.kind].queries, outputs.shape[2])
        total = (outputs.double() * is_real[:, None, :, None]).sum((0, 2))
        place = circuit.kind, circuit.layer
        self.sums[place] = self.sums[place] + total if place in self.sums else total
        if circuit.layer == 0:
            self.counts[circuit.kind] = self.counts.get(circuit.kind, 0) + int(is_real.sum())


def mean_outputs(instrument: Instrument, batches: Iterable[Inputs]) -> tuple[Means, Mapping[str, int]]:
    """What each head hands to W_O on average over all query tokens that are no padding, and how many those are by kind.

    Special tokens count.
    """
    watch = _Sums(instrument)
    with torch.inference_mode(), instrument.watching(watch):
        for watch.inputs in batches:
            instrument.run(watch.inputs)
    means = {place: (total / watch.counts[place[0]]).float() for place, total in watch.sums.items()}
    return means, watch.counts
