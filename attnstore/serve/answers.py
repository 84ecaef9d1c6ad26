"""This file keeps answers to questions, and lets those who ask the same at once wait for one of them."""

import asyncio
import hashlib
import json
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from attnstore.serve.metrics import Metrics


@dataclass(frozen=True, slots=True)
class Answer:
    """What a worker gave: what it says of the answer, the answer, and the key that names it."""

    head: dict[str, Any]
    body: bytes
    key: str

    @property
    def etag(self) -> str:
        """For HTTP: equal for the same question to the same snapshot."""
        return f'"{self.key[:32]}"'


def key_of(*parts: object) -> str:
    """What names an answer: content hashes, question, parameters and form, hashed."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


class Answers:
    """Answers by key, the least used thrown out where they take more than `limit` bytes."""

    def __init__(self, limit: int, metrics: Metrics) -> None:
        self._limit, self._metrics = limit, metrics
        self._held: OrderedDict[str, Answer] = OrderedDict()
        self._bytes = 0
        self._asked: dict[str, asyncio.Task[Answer]] = {}
        self._waiting: dict[str, int] = {}

    def known(self, key: str) -> Answer | None:
        """The answer that is held, or None."""
        found = self._held.get(key)
        if found is not None:
            self._held.move_to_end(key)
            self._metrics.cached.inc()
        return found

    async def get(self, key: str, ask: Callable[[], Awaitable[tuple[dict[str, Any], bytes]]]) -> Answer:
        """The answer that is held, else what `ask` gives; whoever asks meanwhile waits for the same."""
        if (found := self.known(key)) is not None:
            return found
        while True:
            if key not in self._asked:
                task = asyncio.create_task(self._ask(key, ask))
                self._asked[key] = task
                task.add_done_callback(lambda done: self._is_answered(key, done))
            task = self._asked[key]
            self._waiting[key] = self._waiting.get(key, 0) + 1
            try:
                # One who goes away leaves the others their answer.
                return await asyncio.shield(task)
            except asyncio.CancelledError:
                own = asyncio.current_task()
                if not task.cancelled() or own is None or own.cancelling():
                    raise
            finally:
                self._waiting[key] -= 1
                if not self._waiting[key]:
                    del self._waiting[key]
                    task.cancel()

    def _is_answered(self, key: str, task: asyncio.Task[Answer]) -> None:
        del self._asked[key]
        if not task.cancelled():
            task.exception()  # for those who are still there; where nobody is, it is nobody's

    async def _ask(self, key: str, ask: Callable[[], Awaitable[tuple[dict[str, Any], bytes]]]) -> Answer:
        head, body = await ask()
        answer = Answer(head, body, key)
        size = len(body) + 1024
        if size <= self._limit // 4:
            self._held[key] = answer
            self._bytes += size
            while self._bytes > self._limit:
                _, old = self._held.popitem(last=False)
                self._bytes -= len(old.body) + 1024
        return answer
