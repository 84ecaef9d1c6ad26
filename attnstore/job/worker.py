"""This file is what a worker does: it opens its tools, works off tasks, and hands back results or errors."""

import contextlib
import os
import pickle
import queue
import threading
import traceback
from multiprocessing.connection import Connection
from typing import Any

from attnstore.errors import AttnStoreError
from attnstore.job.pool import Task, Work


class Workplace:
    """The tools of one worker and the task at them. What it gives is (True, result) or (False, error)."""

    def __init__(self, work: Work) -> None:
        self._work, self._tools = work, None

    def open(self) -> tuple[bool, Any]:
        """Open the tools, which come first; the result is None."""
        try:
            self._tools = self._work.open()
            return True, None
        except Exception as error:
            return False, _carried(error)

    def run(self, task: Task) -> tuple[bool, Any]:
        """Do a task."""
        try:
            return True, task.run(self._tools)
        except Exception as error:
            return False, _carried(error)


def result_of(answer: tuple[bool, Any]) -> Any:
    """What a worker gave; its error is raised."""
    is_done, value = answer
    if not is_done:
        raise value
    return value


def serve(descriptor: int) -> None:
    """Work off what comes through a pipe until its other end closes."""
    connection, tasks = Connection(descriptor), queue.SimpleQueue[Any]()
    threading.Thread(target=_receive, args=(connection, tasks), daemon=True).start()
    place = Workplace(tasks.get())
    connection.send(place.open())
    while True:
        connection.send(place.run(tasks.get()))


def _receive(connection: "Connection[Any, Any]", tasks: "queue.SimpleQueue[Any]") -> None:
    try:
        while True:
            tasks.put(connection.recv())
    except (EOFError, OSError):
        pass  # whoever gives out the tasks is gone, or wants no more of this one: nobody would take the result
    except Exception:
        traceback.print_exc()  # a task that cannot be read
    os._exit(1)


def _carried(error: Exception) -> Exception:
    """The error in a form that can travel, with the place where it happened."""
    told = "".join(traceback.format_exception(error))
    error.add_note(f"in a worker:\n{told}")
    with contextlib.suppress(Exception):
        # MissingExtra comes back as the error that it is one of.
        if isinstance(pickle.loads(pickle.dumps(error)), AttnStoreError | type(error)):
            return error
    return RuntimeError(told)
