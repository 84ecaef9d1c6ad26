"""This file adds to a store the evidence that its recipe asks for and that is not there yet, part by part."""

import time
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from tqdm import tqdm

from attnstore.errors import BadInput
from attnstore.format import names
from attnstore.format.commit import commit, published
from attnstore.format.manifest import read_unit
from attnstore.job.evidence.kinds import EVIDENCE_KINDS
from attnstore.job.evidence.lab import Lab
from attnstore.job.evidence.part import write_part
from attnstore.job.model_source import ModelSource
from attnstore.job.plan import Plan
from attnstore.job.recipe import Recipe
from attnstore.job.source import Prepared, Source

SNAPSHOT_SECONDS = 60.0
"""Evidence becomes visible at least this often, and at its end."""


def collect(root: Path, plan: Plan, recipe: Recipe, source: Source) -> None:
    """Add what is missing of `[keep] evidence`; an interrupted call goes on after the last part that it published.

    BadInput where the store holds such evidence with other parameters, or the model has no such head; NotCaptured
    where the architecture cannot give it.
    """
    assert isinstance(source, ModelSource), "a recipe of ready-made maps asks for no evidence"
    asked = {*recipe.keep.evidence, *(one for name in recipe.keep.evidence for one in EVIDENCE_KINDS[name].needs)}
    wanted = {name: _parameters(recipe, name) for name in EVIDENCE_KINDS if name in asked}
    for name, parameters in wanted.items():
        _check_same(root, name, parameters)
    if all(_is_done(root, name, plan) for name in wanted):
        return
    lab = Lab(root, recipe, plan, source)
    lab.check(list(islice((item for item in source.examples() if isinstance(item, Prepared)), 2)))
    kinds = [EVIDENCE_KINDS[name] for name in wanted]
    if any(kind.depends_on for kind in kinds):
        lab.check_labels(needed=any(kind.needs_labels for kind in kinds))
    for name in wanted:
        if (check := EVIDENCE_KINDS[name].check) is not None:
            check(lab)
    committed = time.monotonic()
    for name, parameters in wanted.items():
        there = set(_published(root, name))
        # disable=None: shown on a terminal, quiet otherwise.
        with tqdm(desc=name.replace("_", " "), unit=" examples", disable=None) as bar:
            for part in EVIDENCE_KINDS[name].parts(lab, {_part_of(name, addition) for addition in there}):
                addition = f"{_prefix(name)}{part.name}"
                if addition not in there:
                    facts: dict[str, Any] = {"scope": part.scope, "evidence": name, "parameters": parameters}
                    if part.scope != "store":
                        facts[part.scope] = part.name
                    write_part(root, addition, part, facts)
                bar.update(part.examples)
                if time.monotonic() - committed > SNAPSHOT_SECONDS:
                    commit(root, plan.info.store_id)
                    committed = time.monotonic()
        commit(root, plan.info.store_id)


def _prefix(name: str) -> str:
    return f"{name.replace('_', '-')}."


def _part_of(name: str, addition: str) -> str:
    return addition.removeprefix(_prefix(name))


def _published(root: Path, name: str) -> list[str]:
    return [addition for addition in published(root, names.ADDITIONS) if addition.startswith(_prefix(name))]


def _is_done(root: Path, name: str, plan: Plan) -> bool:
    """Whether nothing is left of evidence that has one part for each segment, or one at all."""
    scope, there = EVIDENCE_KINDS[name].scope, len(_published(root, name))
    return (scope == "segment" and there == len(plan.info.segments)) or (scope == "store" and there == 1)


def _parameters(recipe: Recipe, name: str) -> Mapping[str, Any]:
    """What the evidence was made with: those keys of the recipe that it depends on."""
    record = recipe.record()
    return {table: record[table] for table in EVIDENCE_KINDS[name].depends_on}


def _check_same(root: Path, name: str, parameters: Mapping[str, Any]) -> None:
    for addition in _published(root, name)[:1]:
        stored = read_unit(root, f"{names.ADDITIONS}/{addition}").facts.get("parameters", {})
        for table, keys in parameters.items():
            for key, value in keys.items():
                mine = stored.get(table, {}).get(key)
                plain = list(value) if isinstance(value, tuple) else value
                if mine != plain:
                    raise BadInput(
                        f"adding {name} to {root}",
                        f"there are some already, made with {table}.{key} = {mine!r}",
                        f"{plain!r}, as this recipe says",
                        "Ask for the same again, or ingest into another store",
                    )
