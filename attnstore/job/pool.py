"""This file hands tasks to workers that run one at a time, and gives a task anew whose worker died.

What a task is done with (a loaded model, an open store) is opened once in each worker. Workers are processes of this
machine (`processes.py`) or actors on Ray (`on_ray.py`); `Alone` does the same tasks in this process.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Protocol

from attnstore.errors import AttnStoreError

DEATHS = 3
"""So often may a task lose its worker before the run ends with an error: it may be the task that kills them."""


class Task(Protocol):
    """A piece of work that can be done again from the start. It travels to the worker as it is."""

    @property
    def name(self) -> str:
        """What errors call it: "segment 3"."""
        ...

    def begin(self) -> None:
        """Called where tasks are given out, each time before a worker gets it."""
        ...

    def run(self, tools: Any, /) -> Any:
        """Do it, in the worker, with what `Work.open` gave there."""
        ...

    def drop(self) -> None:
        """Remove what an attempt that ended early left, where tasks are given out. The attempt may still be going."""
        ...


class Work(Protocol):
    """What all tasks of a run have in common. It travels to each worker once."""

    def open(self) -> Any:
        """What tasks are done with."""
        ...


class Died(Exception):
    """A worker is gone; the text says how."""


class Worker(Protocol):
    """One worker. It opens its tools, then does the task that it was given; `take` follows each of the two."""

    def give(self, task: Task) -> None:
        """Let it do a task. A worker that is gone meanwhile says so in `take`."""
        ...

    def take(self) -> Any:
        """What it gave; Died where it is gone, or the error that it met."""
        ...

    def end(self) -> None:
        """Stop it at once, and wait until it is gone."""
        ...


class Hands(Protocol):
    """Where workers come from; `size` says how many there may be."""

    size: int

    def start(self, work: Work) -> Worker:
        """A new worker, which opens its tools."""
        ...

    def wait(self, workers: Sequence[Any]) -> Sequence[Any]:
        """Wait until some of these can be taken from, one at least."""
        ...


class Alone:
    """Does tasks one after the other in this process."""

    def __init__(self, tools: Any) -> None:
        self._tools = tools

    def __enter__(self) -> "Alone":
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        pass

    def spread(self, tasks: Iterable[Task], count: int) -> Iterator[tuple[Any, Any]]:
        """Each task as it is done, with what it gave."""
        for task in tasks:
            task.begin()
            try:
                result = task.run(self._tools)
            except BaseException:
                task.drop()
                raise
            yield task, result


class Pool:
    """Does tasks in workers, which stay open between two calls of `spread` and end with the block."""

    def __init__(self, hands: Hands, work: Work) -> None:
        self._hands, self._work = hands, work
        self._idle: list[Worker] = []
        self._at_work: dict[Worker, Task | None] = {}  # None while its tools are being opened

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        for worker in (*self._idle, *self._at_work):
            worker.end()
        for task in self._at_work.values():
            if task is not None:
                task.drop()

    def spread(self, tasks: Iterable[Task], count: int) -> Iterator[tuple[Any, Any]]:
        """Each task as it is done, with what it gave, in the order in which they end; `count` workers at most.

        Beside those in work, one task is held. The error of a task is raised here. AttnStoreError where a task lost
        its worker three times.
        """
        source, ahead, deaths = iter(tasks), list[Task](), Counter[str]()
        while True:
            ahead = ahead or list(islice(source, 1))
            if ahead and self._idle:
                worker, task = self._idle.pop(), ahead.pop()
                task.begin()
                self._at_work[worker] = task
                worker.give(task)
            elif ahead and len(self._at_work) < min(self._hands.size, count):
                self._at_work[self._hands.start(self._work)] = None
            elif ahead or any(task is not None for task in self._at_work.values()):
                for worker in self._hands.wait(list(self._at_work)):
                    yield from self._taken(worker, ahead, deaths)
            else:
                return

    def _taken(self, worker: Worker, ahead: list[Task], deaths: Counter[str]) -> Iterator[tuple[Task, Any]]:
        task = self._at_work.pop(worker)
        try:
            result = worker.take()
        except BaseException as error:
            worker.end()
            if task is not None:
                task.drop()
            if not isinstance(error, Died):
                raise
            name = "the start of a worker" if task is None else task.name
            deaths[name] += 1
            if deaths[name] == DEATHS:
                raise AttnStoreError(
                    f"working on {name}",
                    f"its worker died {DEATHS} times, at last by {error}",
                    remedy="SIGKILL often means that memory ran out: try fewer workers, or encode.max_length",
                ) from None
            if task is not None:
                ahead.append(task)
            return
        self._idle.append(worker)
        if task is not None:
            yield task, result
