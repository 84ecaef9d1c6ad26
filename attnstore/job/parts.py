"""This file cuts an ingest into parts that any scheduler can run: plan once, run each part anywhere, finish once.

What parts need and store.json does not say lies beside it in a file that readers pass over, until the run is finished.
"""

import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnstore.errors import BadInput, Damaged
from attnstore.format import names
from attnstore.format.commit import commit, published, sync, write
from attnstore.format.manifest import dumps, load, read_store, read_unit
from attnstore.job.begin import PLAN_FILE, begin, check_space, disk_errors_named
from attnstore.job.build import Builder, Check, check_source
from attnstore.job.plan import Plan, make_plan
from attnstore.job.pool import Alone
from attnstore.job.recipe import Recipe
from attnstore.job.run import missing, run_segments
from attnstore.job.sources import source_for
from attnstore.share.card import write_card
from attnstore.store.store import Store
from attnstore.store.store import open as open_store


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan as it was written: the recipe with the folder that its paths begin in, and the device."""

    plan: Plan
    recipe: Recipe
    device: str


def plan(recipe: Recipe | str | Path, store: str | Path, *, device: str = "cpu") -> Plan:
    """Plan a recipe into the store at `store`: check the model and the disk, write store.json and the plan beside it.

    Raises what `ingest` raises, and BadInput for a corpus from standard input, which no part could read again.
    """
    recipe = recipe if isinstance(recipe, Recipe) else Recipe.read(recipe)
    root = Path(store)
    if "-" in recipe.corpus.path:
        remedy = "Write it to a file, or run it in one go: attnstore ingest"
        raise BadInput(f"planning {root}", "a corpus from standard input", "files, which each part reads again", remedy)
    source = source_for(recipe, device)
    made = make_plan(recipe, source)
    with disk_errors_named(root):
        crew = Alone(Builder(made.info, source))
        begin(root, made, source, lambda sample: list(crew.spread([Check(sample)], 1)))
        _write(root, made, recipe, device)
    return made


def run(
    store: str | Path,
    *,
    part: tuple[int, int] | None = None,
    segments: tuple[int, int] | None = None,
    device: str | None = None,
) -> range:
    """Build what is missing of a part of a planned store, and return the numbers of its segments.

    `part` is (i, n): the i-th of n parts, from 1. `segments` is (first, last), from 0, the last included; without
    either it is all of them. The corpus is read as far as the last one needs. Nothing becomes visible before `finish`.
    The same call resumes, and several may work on one part. BadInput where there is no plan, or corpus or model are no
    longer those that were planned.
    """
    root = Path(store)
    info = read_store(root)
    wanted = _chosen(len(info.segments), part, segments, f"running {root}")
    if missing(root, wanted):
        planned = _read(root)
        source = source_for(planned.recipe, device or planned.device)
        check_source(info, source)
        with disk_errors_named(root):
            check_space(root, planned.plan, f"running {root}")
            run_segments(root, planned.plan, source, wanted, Alone(Builder(info, source)), visible=False)
    return wanted


def finish(store: str | Path) -> Store:
    """Make the segments of a planned store visible, and return it opened. The same call again changes nothing.

    BadInput where some are missing. Evidence is not made: `lacking_evidence` names what the recipe asks for.
    """
    root = Path(store)
    info = read_store(root)
    left = missing(root, range(len(info.segments)))
    if left:
        some = ", ".join(map(str, left[:5])) + (", …" if len(left) > 5 else "")
        raise BadInput(
            f"finishing {root}",
            f"{len(left)} of {len(info.segments)} segments are missing: {some}",
            remedy=f"Make them with: attnstore run {root}",
        )
    with disk_errors_named(root):
        commit(root, info.store_id)
        write_card(root)
        (root / PLAN_FILE).unlink(missing_ok=True)
    return open_store(root)


def lacking_evidence(store: Store) -> list[str]:
    """The evidence that the recipe of a store asks for and of which nothing is there."""
    folders = (f"{names.ADDITIONS}/{name}" for name in published(store.contents.folder, names.ADDITIONS))
    there = {read_unit(store.contents.folder, folder).facts.get("evidence") for folder in folders}
    return [name for name in store.info.recipe["keep"].get("evidence", ()) if name not in there]


def _chosen(count: int, part: tuple[int, int] | None, segments: tuple[int, int] | None, doing: str) -> range:
    if part is not None and segments is not None:
        raise BadInput(doing, f"part = {part} and segments = {segments}", "one of them")
    if part is not None:
        number, parts = part
        if not 1 <= number <= parts:
            raise BadInput(doing, f"part {number}/{parts}", f"1/{max(parts, 1)} to {max(parts, 1)}/{max(parts, 1)}")
        return range(count * (number - 1) // parts, count * number // parts)
    first, last = (0, count - 1) if segments is None else segments
    if not 0 <= first <= last < count:
        raise BadInput(doing, f"segments {first}-{last}", f"segments of the plan, 0-{count - 1}")
    return range(first, last + 1)


def _write(root: Path, plan: Plan, recipe: Recipe, device: str) -> None:
    value: dict[str, Any] = {
        "store_id": plan.info.store_id,
        "folder": str(recipe.folder.absolute()),
        "from": str(Path.cwd()),
        "recipe": recipe.record(),
        "device": device,
        "tokens": plan.n_tokens,
        "weights": plan.n_weights,
        "longest": plan.longest,
        "skipped": plan.skipped,
        "digests": list(plan.digests),
    }
    staging = root / f"{PLAN_FILE}-{secrets.token_hex(4)}"
    write(staging, dumps(value))
    staging.replace(root / PLAN_FILE)
    sync(root)


def _read(root: Path) -> Planned:
    path = root / PLAN_FILE
    if not path.is_file():
        raise BadInput(f"running {root}", "no plan", remedy=f"Make one first: attnstore plan RECIPE {root}")
    value, info = load(path), read_store(root)
    try:
        if value["store_id"] != info.store_id or len(value["digests"]) != len(info.segments):
            raise ValueError("it is the plan of another store")
        tokens, weights, longest, skipped = (int(value[name]) for name in ("tokens", "weights", "longest", "skipped"))
        made = Plan(info, tokens, weights, longest, skipped, tuple(map(str, value["digests"])))
        recipe = Recipe.build(value["recipe"], folder=Path(value["folder"]), doing=f"reading {path}")
        _check_place(root, recipe.model.name, Path(value["from"]))
        return Planned(made, recipe, str(value["device"]))
    except BadInput:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise Damaged(f"reading {path}", str(error), "what attnstore plan wrote", "Run attnstore plan again") from error


def _check_place(root: Path, model: str, planned_in: Path) -> None:
    """Raises BadInput where the model is a folder as seen from where the plan was made, and not from here."""
    if not Path(model).exists() and (planned_in / model).is_dir():
        remedy = f"Run it in {planned_in}, or plan with the full path"
        raise BadInput(f"running {root}", f"no model folder {model} here", "the one that was planned", remedy)
