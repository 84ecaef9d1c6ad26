"""This file gives evidence what it needs: the model with its task's head, and the store's examples as inputs."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from attnstore.capture.check import compare
from attnstore.capture.instrument import Inputs, Instrument, on_device
from attnstore.capture.task_model import task_of
from attnstore.capture.tasks import Item, Task
from attnstore.errors import BadInput
from attnstore.format.manifest import StoreInfo
from attnstore.job.model_source import ModelSource
from attnstore.job.plan import Plan
from attnstore.job.recipe import Recipe
from attnstore.job.rows import Placed, place
from attnstore.job.segment import batches
from attnstore.job.segments import segments
from attnstore.job.source import Prepared


class Lab:
    """A store's model, ready to be watched and interfered with, and the examples that the store holds."""

    def __init__(self, root: Path, recipe: Recipe, plan: Plan, source: ModelSource) -> None:
        self.root, self.recipe, self.plan, self.source = root, recipe, plan, source
        captor = source.loaded(recipe.task.kind)
        self.instrument = Instrument(captor)
        own = recipe.task
        self.task: Task | None = (
            task_of(own.kind, captor, labels=own.labels, targets=own.targets, seed=own.seed, folder=recipe.folder)
            if own.kind
            else None
        )

    @property
    def info(self) -> StoreInfo:
        """What store.json says."""
        return self.plan.info

    def check(self, sample: Sequence[Prepared]) -> None:
        """Compare the maps with the library's own on at most two examples, as an ingest does."""
        compare(self.instrument.captor, self.source.inputs(sample))

    def check_labels(self, *, needed: bool) -> None:
        """BadInput for a label that does not fit the task, and where `needed` for a corpus without any."""
        if self.task is None or not self.task.needs_labels:
            return
        gold = [self.task.gold(item) for item in self.every_item()]
        if needed and not any(one is not None for one in gold):
            raise BadInput(
                f"scoring {self.recipe.model.name}",
                "no example has a label",
                f"labels for {self.recipe.task.kind}",
                "Name the column of the corpus: columns.label = …",
            )

    def placed(self, wanted: Sequence[int]) -> Iterator[tuple[int, list[Placed]]]:
        """The examples of each of these segments, in the order in which the segment holds their cells."""
        for segment in segments(self.plan, self.source, wanted):
            items = (place(segment.first + index, item, self.info.kinds) for index, item in enumerate(segment.prepared))
            yield segment.number, sorted(items, key=lambda item: (item.prepared.length, item.number))

    def batches(self, placed: Sequence[Placed]) -> Iterator[list[Placed]]:
        """Examples of like length together, few enough for one pass."""
        return batches(placed, max(kind.heads for kind in self.info.kinds.values()))

    def inputs(self, batch: Sequence[Placed]) -> Inputs:
        """What the model is fed for a batch, on its device."""
        return on_device(self.instrument, self.source.inputs([item.prepared for item in batch]))

    def items(self, batch: Sequence[Placed]) -> list[Item]:
        """A batch as the task sees it."""
        return [_item(item.number, item.prepared) for item in batch]

    def every_item(self) -> Iterator[Item]:
        """All examples of the corpus as the task sees them, in order."""
        prepared = (item for item in self.source.examples() if isinstance(item, Prepared))
        return (_item(number, item) for number, item in enumerate(prepared))


def _item(number: int, prepared: Prepared) -> Item:
    example = prepared.example
    return Item(number, example.name, example.label, example.text, example.second, prepared.source, prepared.target)


def by_kind(info: StoreInfo, batch: Sequence[Placed]) -> Mapping[str, list[tuple[int, Placed]]]:
    """For each kind of attention the row in the batch and the example of those that have such maps."""
    return {kind: [(row, item) for row, item in enumerate(batch) if kind in item.frames] for kind in info.kinds}
