"""A store that is planned, filled, killed, tagged, annotated, collected and copied in any order holds what it must.

The model is a handful of Python values: which segments were published, which labels were given, what every snapshot
held when it was made, and what tags name. Segments of one plan have the same bytes whoever made them, so the hashes of
an undisturbed ingest say what is right.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import attnstore
import attnstore.job.plan
from attnstore.errors import NotFound
from attnstore.format import names
from attnstore.format.commit import commit, latest, published, snapshots
from attnstore.format.manifest import read_store
from attnstore.format.verify import verify
from attnstore.job import parts
from attnstore.job.annotate import annotate_labels
from attnstore.job.run import ingest
from attnstore.share.collect import gc
from attnstore.share.compact import compact
from attnstore.share.tags import tag, tags, untag
from attnstore.store.contents import read_contents
from tests.survival.dying import Forks
from tests.survival.growing import Held, held, recipe_of, write_corpus

ANNOTATIONS = 3
"""Annotations of one run: each opens an engine, which takes longer than all else."""


@dataclass(frozen=True)
class Ground:
    """What all runs share: the corpus, an undisturbed store of it, its maps, and a process that forks."""

    corpus: Path
    whole: Held
    maps: dict[str, np.ndarray]
    forks: Forks
    grown: list["Stores"] = field(default_factory=list)


class Stores(RuleBasedStateMachine):
    """The rules and what holds after each."""

    ground: ClassVar[Ground]

    def __init__(self) -> None:
        super().__init__()
        self.place = Path(tempfile.mkdtemp(prefix="attnstore-states-"))
        self.root = self.place / "s.attn"
        self.recipe = recipe_of(self.ground.corpus)
        self.planned = False
        self.published: set[str] = set()
        self.labels: dict[str, str] = {}
        self.made: dict[int, Held] = {}
        self.tags: dict[str, int] = {}
        self.annotated = 0
        self.compacted = False
        self.verified: object = None

    def teardown(self) -> None:
        shutil.rmtree(self.place, ignore_errors=True)

    # What the model says.

    def expected(self) -> Held:
        """What a snapshot that is made now holds."""
        order = sorted(self.ground.whole.segments)
        numbers = [order.index(name) for name in sorted(self.published)]
        rows = list(self.ground.whole.rows.items())
        # One sentence is one segment.
        found = {name: (self.labels.get(name), *row[1:]) for name, row in (rows[number] for number in numbers)}
        return Held(found, {name: self.ground.whole.segments[name] for name in self.published})

    def committed(self) -> None:
        """Everything that is published is visible now."""
        newest = latest(self.root).number
        self.made.setdefault(newest, self.expected())
        assert self.made[newest] == self.expected()

    @property
    def whole(self) -> bool:
        return len(self.published) == len(self.ground.whole.segments)

    @property
    def visible(self) -> bool:
        return bool(self.made)

    # What happens.

    @initialize(is_grown=st.booleans())
    def begin(self, is_grown: bool) -> None:
        """Begin with nothing, or with a copy of a store of four snapshots whose first labels were superseded."""
        for before in self.ground.grown if is_grown else []:
            shutil.copytree(before.root, self.root)
            self.planned, self.annotated = True, before.annotated
            self.published, self.labels, self.made = set(before.published), dict(before.labels), dict(before.made)

    @rule()
    def plan(self) -> None:
        parts.plan(self.recipe, self.root)
        self.planned = True

    @precondition(lambda self: self.planned)
    @rule(segment=st.integers(0, 2))
    def ingest_a_segment(self, segment: int) -> None:
        if names.segment_name(segment) not in self.published and not (self.root / names.PLAN).exists():
            parts.plan(self.recipe, self.root)
        parts.run(self.root, segments=(segment, segment))
        self.published.add(names.segment_name(segment))

    @precondition(lambda self: self.published)
    @rule()
    def commit(self) -> None:
        commit(self.root, read_store(self.root).store_id)
        self.committed()

    @precondition(lambda self: self.planned and not self.whole)
    @rule(segment=st.integers(0, 2), step=st.integers(1, 60))
    def kill_a_writer(self, segment: int, step: int) -> None:
        if not (self.root / names.PLAN).exists():
            parts.plan(self.recipe, self.root)
        ended = self.ground.forks.run("segment", self.root, segment=segment, step=step)
        assert ended in (0, -9)
        there, name = set(published(self.root, names.SEGMENTS)), names.segment_name(segment)
        assert self.published <= there <= self.published | {name}
        self.published = there
        self.after_a_kill(ended)

    @precondition(lambda self: self.visible)
    @rule(step=st.integers(1, 14))
    def kill_a_collector(self, step: int) -> None:
        before = set(snapshots(self.root))
        ended = self.ground.forks.run("gc", self.root, step=step)
        assert ended in (0, -9)
        kept = set(self.tags.values()) & set(self.made)
        assert kept <= set(snapshots(self.root))
        self.after_a_kill(ended, before)

    def after_a_kill(self, ended: int, before: set[int] | None = None) -> None:
        """The newest snapshot is the one that it was, or a new one of all that is published."""
        there = set(snapshots(self.root))
        if new := there - set(self.made):
            assert len(new) == 1
            assert max(there) in new
            self.committed()
        if before is None:
            assert set(self.made) <= there
            assert ended != 0 or held(self.root) == self.expected()
        self.made = {number: self.made[number] for number in there}

    @precondition(lambda self: self.planned)
    @rule()
    def resume(self) -> None:
        ingest(self.recipe, self.root).close()
        self.published = set(self.ground.whole.segments)
        self.committed()

    @precondition(lambda self: self.whole and self.visible and self.annotated < ANNOTATIONS)
    @rule(example=st.integers(0, 2), label=st.sampled_from("ab"))
    def annotate(self, example: int, label: str) -> None:
        name = list(self.ground.whole.rows)[example]
        (self.place / "l.csv").write_text(f"name,text,label\n{name},x,{label}\n")
        if latest(self.root).content_hash and held(self.root) != self.expected():
            commit(self.root, read_store(self.root).store_id)
            self.committed()
        annotate_labels(self.root, self.place / "l.csv")
        self.annotated += 1
        self.labels[name] = label
        self.committed()

    @precondition(lambda self: self.visible)
    @rule(name=st.sampled_from(["paper", "talk"]), data=st.data())
    def tag(self, name: str, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.made)))
        assert tag(self.root, name, number, move=True).snapshot == number
        self.tags[name] = number

    @precondition(lambda self: self.tags)
    @rule(data=st.data())
    def untag(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.tags)))
        assert untag(self.root, name).snapshot == self.tags.pop(name)

    @precondition(lambda self: self.planned)
    @rule(superseded=st.booleans())
    def collect_all(self, superseded: bool) -> None:
        would = gc(self.root, 0, dry_run=True, superseded=superseded)
        done = gc(self.root, 0, superseded=superseded)
        assert [(one.path, one.why) for one in would] == [(one.path, one.why) for one in done]
        left = [path for path in self.root.rglob(f"{names.STAGING}*") if path.name != names.PLAN]
        assert left == []
        if self.visible:
            newest = latest(self.root)
            if newest.number not in self.made:  # it drops what was superseded
                assert superseded
                assert newest.dropped
                self.made[newest.number] = self.made[max(self.made)]
            kept = {newest.number} | set(self.tags.values())
            self.made = {number: self.made[number] for number in self.made if number in kept}
            if superseded and not self.tags:
                assert len(newest.additions) <= 1
                assert [one.id for one in newest.additions] == published(self.root, names.ADDITIONS)

    @precondition(lambda self: self.planned)
    @rule()
    def collect_what_is_old(self) -> None:
        assert gc(self.root, 24) == []

    @precondition(lambda self: self.visible)
    @rule(data=st.data())
    def open_an_old_snapshot(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.made)))
        assert held(self.root, number) == self.made[number]
        with pytest.raises(NotFound):
            held(self.root, max(self.made) + 1)

    @precondition(lambda self: self.visible)
    @rule()
    def copy_the_folder(self) -> None:
        copy = Path(shutil.copytree(self.root, self.place / "copy.attn"))
        newest = max(self.made)
        assert held(copy) == self.made[newest]
        assert latest(copy) == latest(self.root)
        shutil.rmtree(copy)

    @precondition(lambda self: self.visible and self.annotated == ANNOTATIONS)
    @rule()
    def look_at_a_map(self) -> None:
        self.annotated += 1  # once in a run: it loads an engine
        with attnstore.open(self.root) as store:
            for name in self.made[max(self.made)].rows:
                assert np.abs(store.attention(name).weights - self.ground.maps[name]).max() < 1e-3

    @precondition(lambda self: self.visible and self.annotated > 0 and not self.compacted)
    @rule()
    def compact(self) -> None:
        newest = self.made[max(self.made)]
        if len(newest.segments) == len(self.ground.whole.segments):
            self.compacted = True  # once in a run, as it opens an engine
            before = _files(self.root)
            small = compact(self.root, self.place / "small.attn")
            assert (held(small).rows, len(held(small).segments)) == (newest.rows, 1)
            assert verify(small) == []
            assert _files(self.root) == before
            shutil.rmtree(small)

    # What holds.

    @invariant()
    def everything_that_must_be_readable_is(self) -> None:
        assert (self.root / names.STORE).exists() == self.planned
        if not self.planned:
            return
        assert snapshots(self.root) == sorted(self.made)
        assert {one.name: one.snapshot for one in tags(self.root)} == self.tags
        if not self.visible:
            return
        kept = {max(self.made), *self.tags.values()}
        for number in kept:
            assert read_contents(self.root, snapshot=number).units is not None  # every listed file is there
        # What was read and hashed once is so again when a file changed, came or went.
        now = {number: latest(self.root, number) for number in kept}, _files(self.root)
        if now != self.verified:
            assert held(self.root) == self.made[max(self.made)]
            for name, number in self.tags.items():
                assert held(self.root, tag=name) == self.made[number]
            assert verify(self.root) == []
            self.verified = now


def _files(root: Path) -> dict[str, tuple[int, int, int]]:
    units = (root / names.SEGMENTS, root / names.ADDITIONS)
    found = ((path, path.lstat()) for unit in units for path in unit.rglob("*") if names.STAGING not in str(path))
    return {str(path): (at.st_ino, at.st_size, at.st_mtime_ns) for path, at in found if path.is_file()}


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    before = attnstore.job.plan.SEGMENT_TOKENS
    place = tmp_path_factory.mktemp("ground")
    corpus = write_corpus(place / "corpus")
    ingest(recipe_of(corpus), place / "whole.attn").close()
    with np.load(corpus.parent / "maps.npz") as file:
        maps = {name.partition("/")[0]: file[name] for name in file.files}
    whole = held(place / "whole.attn")
    assert len(whole.segments) == len(whole.rows) == 3
    with Forks() as forks:
        found = Ground(corpus, whole, maps, forks)
        Stores.ground = found
        grown = Stores()
        grown.plan()
        grown.ingest_a_segment(0)
        grown.commit()
        grown.resume()
        grown.annotate(0, "a")
        grown.annotate(0, "b")
        assert sorted(grown.made) == [1, 2, 3, 4]
        yield replace(found, grown=[grown])
        grown.teardown()
    attnstore.job.plan.SEGMENT_TOKENS = before


def walk(ground: Ground, examples: int, steps: int, *, derandomize: bool = True) -> None:
    Stores.ground = ground
    run_state_machine_as_test(
        Stores,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            derandomize=derandomize,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_a_few_short_lives_of_a_store(ground: Ground) -> None:
    walk(ground, 4, 12)


@pytest.mark.slow
def test_two_hundred_lives_of_a_store(ground: Ground) -> None:
    walk(ground, 200, 30)


@pytest.mark.soak
@pytest.mark.skipif("ATTNSTORE_SOAK" not in os.environ, reason="takes an hour: set ATTNSTORE_SOAK")
def test_five_thousand_lives_of_a_store(ground: Ground) -> None:
    walk(ground, 5000, 30, derandomize=False)
