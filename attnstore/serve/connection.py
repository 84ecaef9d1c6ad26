"""This file is a connection: it cuts off clients that send a request or fetch an answer too slowly."""

import asyncio
import json

import h11
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from attnstore.serve.access import problem_response
from attnstore.serve.problems import Problem


def connections(seconds: float, most: int) -> type[asyncio.Protocol]:
    """The protocol of connections: a request has to be there within `seconds`, 64 KiB of an answer be fetched in them.

    Requests while there are `most` connections or more are told to come again, and their connections end.

    Of an answer no more than one piece is held in the connection, so that memory follows `Held` alone.
    """

    class Connection(H11Protocol):
        _sending: asyncio.TimerHandle | None = None
        _fetching: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            transport.set_write_buffer_limits(high=0)
            self._sending = self.loop.call_later(seconds, transport.abort)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            state = self.conn.their_state
            is_whole = state is not h11.SEND_BODY and not (state is h11.IDLE and self.conn.trailing_data[0])
            if is_whole:
                _stop(self._sending)
                self._sending = None
            elif self._sending is None:
                self._sending = self.loop.call_later(seconds, self.transport.abort)

        def handle_events(self) -> None:
            # What uvicorn says of its own where there are too many is no problem document.
            self.app = _full if len(self.connections) >= most else self.config.loaded_app
            super().handle_events()

        def pause_writing(self) -> None:
            super().pause_writing()
            _stop(self._fetching)
            self._fetching = self.loop.call_later(seconds, self.transport.abort)

        def resume_writing(self) -> None:
            super().resume_writing()
            _stop(self._fetching)

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            _stop(self._sending)
            _stop(self._fetching)

        def send_400_response(self, msg: str) -> None:
            if self.conn.our_state is not h11.IDLE and self.conn.our_state is not h11.SEND_RESPONSE:
                self.transport.close()  # the answer before is on its way: nothing can be said any more
                return
            problem = Problem("bad-parameter", "a request that is no HTTP", "HTTP/1.1, with headers of at most 64 KiB")
            headers = [("content-type", "application/problem+json"), ("connection", "close")]
            body = json.dumps(problem.body()).encode()
            start = h11.Response(status_code=problem.status, headers=headers, reason=b"Bad Request")
            for event in (start, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
            self.transport.close()

    return Connection


async def _full(scope: Scope, receive: Receive, send: Send) -> None:
    problem = Problem("busy", "there are too many connections", "", "Come again", 5)
    answer = problem_response(problem)
    answer.headers["connection"] = "close"
    await answer(scope, receive, send)


def _stop(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
