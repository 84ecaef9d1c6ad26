"""Stores that somebody made to harm: each use of one ends in a typed error or in the right answer, within limits."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

import pytest

from tests.hostile import array_makers, file_makers, json_makers, table_makers  # noqa: F401 - they register attacks
from tests.hostile.attack import ATTACKS, Attack

Steps = Mapping[str, Sequence[str]]

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs limits of a process")


def used(stores: Sequence[Path]) -> dict[str, Steps]:
    """What using each store gave, by its path; one that ended the process or took too long is absent."""
    found: dict[str, Steps] = {}
    left = [str(store) for store in stores]
    while left:
        command = [sys.executable, "-m", "tests.hostile.exercise", *left]
        run = subprocess.run(
            command, capture_output=True, text=True, timeout=600, cwd=Path(__file__).parents[2], env=_environment()
        )
        lines = [json.loads(line) for line in run.stdout.splitlines()]
        found |= {line["store"]: line["steps"] for line in lines}
        if len(lines) == len(left):
            break
        found[left[len(lines)]] = {"process": ["crash", f"status {run.returncode}", run.stderr[-600:]]}
        left = left[len(lines) + 1 :]
    return found


def _environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "MALLOC_ARENA_MAX": "2"}


def problems(attack: Attack, steps: Steps, honest: Steps) -> list[str]:
    """What is wrong with how a store was taken; nothing where it was refused in time, or answered rightly."""
    found = [f"{name}: {' '.join(step)}" for name, step in steps.items() if step[0] == "crash"]
    told = " ".join(step[2] for step in steps.values() if step[0] == "refused")
    if attack.says is None:
        found += [f"{name}: {' '.join(step)}" for name, step in steps.items() if step != honest.get(name)]
    elif not told:
        found.append(f"all of it was taken: {dict(steps)}")
    else:
        if not re.search(attack.says, told):
            found.append(f"it does not say {attack.says!r}: {told[:3000]}")
        if "verify" in steps and steps["verify"][0] != "refused" and attack.name not in UNSEEN:
            found.append("verify finds nothing")
    # An answer is the right one, or there is none.
    found += [
        f"{name}: another answer"
        for name, step in steps.items()
        if step[0] == "right" and step != honest[name] and attack.name not in SHOWS.get(name, ())
    ]
    return found


SHOWS = {
    "table examples": {
        *("table a long example", "table a negative example", "table cells below nothing"),
        *("table cells beyond the map", "table an example twice", "table an example of another segment"),
    },
    "table tokens": {
        *("table no rows", "table a token twice", "table a word below nothing", "table a word that is not there"),
    },
}
"""Which attacks change what a table says, and so what asking for all of that table shows."""

UNSEEN = ("table a token twice", "table a word below nothing", "table a word that is not there")
"""What `verify` passes over: it holds tables against their types and counts, not against one another."""


@pytest.fixture(scope="module")
def taken(tiny_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Steps, Steps]]:
    """How the store of an attack was taken, and how the honest one is; all of a kind are used by one process."""
    folder = tmp_path_factory.mktemp("hostile")

    @cache
    def group(slow: bool) -> dict[str, Steps]:
        stores = {"": shutil.copytree(tiny_store, folder / f"honest {slow}.attn")}
        for number, attack in enumerate(one for one in ATTACKS.values() if one.is_slow == slow):
            stores[attack.name] = shutil.copytree(tiny_store, folder / f"{slow} {number}.attn")
            attack.make(Path(stores[attack.name]))
        found = used([Path(place) for place in stores.values()])
        return {name: found[str(place)] for name, place in stores.items()}

    def one(name: str) -> tuple[Steps, Steps]:
        every = group(ATTACKS[name].is_slow)
        return every[name], every[""]

    return one


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if one.is_slow else ()) for name, one in ATTACKS.items()]
)
def test_a_hostile_store_is_refused_or_answers_rightly(taken: Callable[[str], tuple[Steps, Steps]], name: str) -> None:
    steps, honest = taken(name)
    assert all(step[0] == "right" for step in honest.values()), honest
    assert problems(ATTACKS[name], steps, honest) == []
