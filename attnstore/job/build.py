"""This file builds one segment and publishes it: a task that is done in this process, in another, or on Ray."""

import dataclasses
import secrets
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from attnstore.errors import BadInput
from attnstore.format import names
from attnstore.format.commit import publish, seal, stage
from attnstore.format.manifest import PlannedSegment, StoreInfo, dumps
from attnstore.job.prepare import corpus_paths
from attnstore.job.recipe import Recipe
from attnstore.job.segment import Segment, fill
from attnstore.job.source import Prepared, Source
from attnstore.job.sources import source_for


class Builder:
    """The source of maps that segments are built with. It is started, which loads the model, by the first of them."""

    def __init__(self, info: StoreInfo, source: Source) -> None:
        self.info, self.source, self._is_started = info, source, False

    def start(self, sample: Sequence[Prepared]) -> None:
        """Load what capture needs and check it on a few examples, unless that was done."""
        if not self._is_started:
            self.source.start(sample)
            self._is_started = True


@dataclass(frozen=True, slots=True)
class Building:
    """What a worker opens to build segments: the model of a recipe, which must be the one that was planned."""

    recipe: Recipe
    device: str
    info: StoreInfo

    def open(self) -> Builder:
        """The model, whose weights are not loaded yet. BadInput where it is another one here."""
        source = source_for(self.recipe, self.device)
        check_source(self.info, source)
        return Builder(self.info, source)


@dataclass(frozen=True, slots=True)
class Check:
    """Lets a worker load the model and check it on a few examples, before there is a store."""

    sample: Sequence[Prepared]
    name: str = "the check of the model"

    def begin(self) -> None:
        """Nothing is staged."""

    def run(self, builder: Builder) -> None:
        """Load and check."""
        builder.start(self.sample)

    def drop(self) -> None:
        """Nothing was staged."""


@dataclass(slots=True)
class Build:
    """One segment, staged where tasks are given out, so that a worker that was killed leaves nothing behind."""

    root: Path
    segment: Segment
    planned: PlannedSegment
    staging: Path | None = None

    @property
    def name(self) -> str:
        """What errors call it."""
        return f"segment {self.segment.number}"

    @property
    def examples(self) -> int:
        """How many examples it holds."""
        return len(self.segment.prepared)

    def begin(self) -> None:
        """Make a new staging folder."""
        self.staging = stage(self.root, folder_of(self.segment.number))

    def run(self, builder: Builder) -> None:
        """Fill, seal and publish it; the copy is dropped where another writer was first."""
        assert self.staging is not None, "begin() comes first"
        folder = folder_of(self.segment.number)
        builder.start(self.segment.prepared[:2])
        rows, shards = fill(self.staging, self.segment, builder.info, builder.source)
        seal(self.staging, folder, {"first": self.planned.first, "stop": self.planned.stop}, rows, shards)
        publish(self.staging, self.root, folder)

    def drop(self) -> None:
        """Remove what was staged."""
        if self.staging is not None:
            discard(self.staging)


def folder_of(number: int) -> str:
    """Where a segment is published."""
    return f"{names.SEGMENTS}/{names.segment_name(number)}"


def discard(staging: Path) -> None:
    """Remove a staged unit, also from under a writer on another machine that was given up and still writes."""
    # Without its name it can no longer be published while it is half removed.
    with suppress(OSError):
        staging = staging.rename(staging.with_name(f"{names.STAGING}dropped-{secrets.token_hex(4)}"))
    shutil.rmtree(staging, ignore_errors=True)


def check_source(info: StoreInfo, source: Source) -> None:
    """Raises BadInput unless model, tokenizer and parser are those that were planned."""
    facts = source.facts
    for what in ("model", "tokenizer", "parser"):
        here, planned = (dict(getattr(side, what)) for side in (facts, info))
        if dumps(here) != dumps(planned):
            keys = [key for key in sorted({*here, *planned}) if here.get(key) != planned.get(key)]
            raise BadInput(
                f"loading the {what} that was planned",
                f"another one here: {', '.join(keys)} differ",
                "the same files and versions wherever segments are built",
            )


def located(recipe: Recipe) -> Recipe:
    """The recipe with full paths, for a worker elsewhere; a corpus from standard input is a file already.

    BadInput where a pattern matches nothing.
    """
    paths = tuple(str(path.absolute()) for path in corpus_paths(recipe))
    corpus = dataclasses.replace(recipe.corpus, path=paths)
    return dataclasses.replace(recipe, corpus=corpus, folder=recipe.folder.absolute())
