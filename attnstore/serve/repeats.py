"""This file gives the same address the same answer again, while it is held, without reading the address again.

What is served never changes while the service runs, so an address and the forms that a client takes name one answer.
Finding that out by routes and validation takes longer than everything else that a held answer needs.
"""

from collections import OrderedDict
from dataclasses import dataclass

from starlette.types import ASGIApp, Receive, Scope, Send

from attnstore.serve.answers import Answers
from attnstore.serve.delivery import Delivery
from attnstore.serve.metrics import Metrics

_MOST = 4096
_NAMING = (b"accept", b"accept-encoding")
"""Headers that choose among the forms of an answer."""

_CHANGING = (b"cache-control", b"if-none-match", b"range")
"""Headers that ask for something else than the whole answer."""

_Key = tuple[str, bytes, tuple[tuple[bytes, bytes], ...]]


@dataclass(frozen=True, slots=True)
class _Repeat:
    """How an answer was handed over, and what names it."""

    answer: str
    delivery: Delivery
    route: object


class Repeats:
    """The last addresses that were answered, before the routes of an application."""

    def __init__(self, app: ASGIApp, answers: Answers, metrics: Metrics) -> None:
        self._app, self._answers, self._metrics = app, answers, metrics
        self._known: OrderedDict[_Key, _Repeat] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer again, or hand on."""
        key = _key(scope)
        known = None if key is None else self._known.get(key)
        answer = None if known is None else self._answers.known(known.answer)
        if known is None or answer is None:
            scope["attnstore.repeats"] = self  # in this one, where the route is told to the counters
            await self._app(scope, receive, send)
            return
        scope["route"] = known.route  # for the counters
        self._metrics.rows.inc(answer.head["rows"])
        await known.delivery.again(answer.body)(scope, receive, send)

    def keep(self, scope: Scope, answer: str, delivery: Delivery) -> None:
        """Remember the answer to a request; `answer` names it among the held ones."""
        key = _key(scope)
        if key is not None:
            self._known[key] = _Repeat(answer, delivery.again(b""), scope["route"])
            while len(self._known) > _MOST:
                self._known.popitem(last=False)


def _key(scope: Scope) -> _Key | None:
    """What names the answer to a request; None where one that was given before may not be the right one."""
    if scope["type"] != "http" or scope["method"] != "GET" or not scope["path"].startswith("/v1/questions/"):
        return None
    headers: list[tuple[bytes, bytes]] = scope["headers"]
    if any(name in _CHANGING for name, _ in headers):
        return None
    return scope["path"], scope["query_string"], tuple(pair for pair in headers if pair[0] in _NAMING)
