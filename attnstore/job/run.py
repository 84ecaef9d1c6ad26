"""This file runs a plan: every segment that is not there yet, then the snapshot that makes them visible."""

import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from tqdm import tqdm

from attnstore.format import names
from attnstore.format.commit import commit, in_work, published
from attnstore.job.begin import PLAN_FILE, begin, disk_errors_named
from attnstore.job.build import Build, Builder, Building, Check, folder_of, located
from attnstore.job.hands import hands_for
from attnstore.job.plan import Plan, make_plan
from attnstore.job.pool import Alone, Pool
from attnstore.job.recipe import Recipe
from attnstore.job.segments import segments
from attnstore.job.source import Source
from attnstore.job.sources import source_for
from attnstore.share.card import write_card
from attnstore.store.store import Store
from attnstore.store.store import open as open_store

SNAPSHOT_SECONDS = 60.0
"""A run makes a snapshot at most this often, and one at its end."""

BUSY_SECONDS = 2.0
"""What other writers have in work is looked up at most this often: a store may have thousands of segments."""


def estimate(recipe: Recipe | str | Path) -> Plan:
    """What an ingest would store and need. The corpus is tokenized; no model weights are loaded."""
    recipe = recipe if isinstance(recipe, Recipe) else Recipe.read(recipe)
    return make_plan(recipe, source_for(recipe))


def ingest(
    recipe: Recipe | str | Path,
    store: str | Path,
    *,
    device: str = "cpu",
    workers: int | None = None,
    ray: str | None = None,
) -> Store:
    """Run a recipe into the store at `store`, and return it opened.

    The same call resumes an interrupted run; several may work on one store at once. A call whose recipe asks for more
    evidence adds it. BadInput where the folder holds a store of another recipe, corpus or model; NoSpace where the disk
    cannot hold it.

    With `workers`, so many processes of this machine build segments, each with a model of its own and an even share of
    the cores. They are started anew and do not run the caller's script, so that it needs no `if __name__ ==
    "__main__"`. With `ray`, the address of a running cluster, they are actors on Ray, as many as it has CPUs, or GPUs
    where `device` is cuda; all nodes must see the store, and arrays, under the same path. A worker that dies has its
    segment done by another. The maps are those of a run alone, bit for bit, where the same batches give the same bits
    (docs/scale.md). Evidence is made afterwards, in this process.
    """
    recipe = recipe if isinstance(recipe, Recipe) else Recipe.read(recipe)
    root = Path(store)
    with hands_for(workers, ray, device, f"ingesting into {root}") as hands:
        read = recipe if hands is None else located(recipe)
        source = source_for(read, device)
        plan = make_plan(recipe, source)
        info = plan.info
        with (
            disk_errors_named(root),
            Alone(Builder(info, source)) if hands is None else Pool(hands, Building(read, device, info)) as crew,
        ):
            count = len(info.segments)  # so that all workers start while one of them checks the model
            begin(root, plan, source, lambda sample: list(crew.spread([Check(sample)], count)))
            run_segments(root, plan, source, range(count), crew)
    with disk_errors_named(root):
        commit(root, info.store_id)
        if recipe.keep.evidence:
            from attnstore.job.evidence.collect import collect  # which loads the model's head

            collect(root, plan, recipe, source)
        write_card(root)
        (root / PLAN_FILE).unlink(missing_ok=True)
    return open_store(root)


def run_segments(
    root: Path, plan: Plan, source: Source, wanted: Sequence[int], crew: Alone | Pool, *, visible: bool = True
) -> None:
    """Build and publish those of the wanted segments that are not there, with a snapshot now and then if `visible`."""
    left, planned = missing(root, wanted), plan.info.segments
    if not left:
        return
    committed = time.monotonic()
    total = sum(planned[number].stop - planned[number].first for number in left)
    # disable=None: shown on a terminal, quiet otherwise.
    with tqdm(total=total, desc="ingest", unit=" examples", disable=None) as bar:
        for task, _ in crew.spread(_tasks(root, plan, source, left), len(left)):
            bar.update(task.examples)
            if visible and time.monotonic() - committed > SNAPSHOT_SECONDS:
                commit(root, plan.info.store_id)
                committed = time.monotonic()


def missing(root: Path, wanted: Sequence[int]) -> list[int]:
    """Those of the wanted segments that are not published."""
    there = set(published(root, names.SEGMENTS))
    return [number for number in wanted if names.segment_name(number) not in there]


def _tasks(root: Path, plan: Plan, source: Source, left: Sequence[int]) -> Iterator[Build]:
    """The segments that are left, read from the corpus as they are asked for, and no further than the last."""
    given: set[int] = set()
    busy, listed = set[str](), float("-inf")
    # Segments that another writer has in work come last: it may finish them, or be dead.
    for leave_to_others in (True, False):
        wanted = [number for number in missing(root, left) if number not in given]
        for segment in islice(segments(plan, source, wanted), len(wanted)):
            name = names.segment_name(segment.number)
            if (root / folder_of(segment.number)).exists():
                continue
            if leave_to_others and time.monotonic() - listed > BUSY_SECONDS:
                busy, listed = in_work(root, names.SEGMENTS), time.monotonic()
            if leave_to_others and name in busy:
                continue
            given.add(segment.number)
            yield Build(root, segment, plan.info.segments[segment.number])
