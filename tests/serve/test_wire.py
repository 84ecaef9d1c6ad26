"""Tests of the messages between the server and its workers: any size passes, and what is no message ends it."""

import asyncio
import io
import json
import os
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnstore.serve import wire

HEADS = st.dictionaries(st.text(max_size=20), st.none() | st.booleans() | st.integers() | st.text(max_size=50))


async def _taken(data: bytes, pieces: int = 1) -> tuple[wire.Head, bytes]:
    reader = asyncio.StreamReader(limit=1024)
    size = -(-len(data) // pieces) or 1
    for start in range(0, len(data), size):
        reader.feed_data(data[start : start + size])
    reader.feed_eof()
    return await wire.take(reader)


@given(head=HEADS, body=st.binary(max_size=5000), pieces=st.integers(1, 50))
def test_a_message_comes_back_as_it_was_sent(head: wire.Head, body: bytes, pieces: int) -> None:
    data = wire.packed(head, body)
    assert wire.receive(io.BytesIO(data)) == (head, body)
    assert asyncio.run(_taken(data, pieces)) == (head, body)


@pytest.mark.parametrize("size", [0, 1, 4095, 65536, 65537, 3_000_001])
def test_bodies_larger_than_any_pipe_pass_one_after_the_other(size: int) -> None:
    async def test() -> None:
        loop = asyncio.get_running_loop()
        taking, giving = os.pipe()
        reader = asyncio.StreamReader(limit=1000)
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(taking, "rb", 0)
        )
        body = os.urandom(size)

        def send() -> None:
            with os.fdopen(giving, "wb") as pipe:
                for number in range(3):
                    wire.send(pipe, {"number": number}, body)

        sending = loop.run_in_executor(None, send)
        for number in range(3):
            assert await wire.take(reader) == ({"number": number}, body)
        await sending
        with pytest.raises(wire.Gone):
            await wire.take(reader)
        transport.close()

    asyncio.run(test())


@given(cut=st.integers(0, 10**6), head=HEADS, body=st.binary(max_size=300))
def test_a_message_that_is_cut_off_anywhere_is_none(cut: int, head: wire.Head, body: bytes) -> None:
    data = wire.packed(head, body)
    with pytest.raises(wire.Gone):
        wire.receive(io.BytesIO(data[: cut % len(data)]))
    with pytest.raises(wire.Gone):
        asyncio.run(_taken(data[: cut % len(data)]))


@given(data=st.binary(max_size=400))
def test_rubbish_is_no_message_or_one_by_chance(data: bytes) -> None:
    for receive in (lambda: wire.receive(io.BytesIO(data)), lambda: asyncio.run(_taken(data))):
        try:
            head, body = receive()
        except wire.Gone:
            continue
        assert isinstance(head, dict)
        assert data[12 : 12 + len(data) - len(body)]


@pytest.mark.parametrize("lengths", [(wire.MOST_HEAD + 1, 0), (2, wire.MOST_BODY + 1), (2**32 - 1, 2**64 - 1)])
def test_lengths_beyond_what_is_allowed_are_refused_before_anything_is_read(lengths: tuple[int, int]) -> None:
    data = struct.pack("<IQ", *lengths) + b"{}"
    with pytest.raises(wire.Gone):
        wire.receive(io.BytesIO(data))
    with pytest.raises(wire.Gone):
        asyncio.run(_taken(data))


@pytest.mark.parametrize("text", [b"[]", b"1", b"null", b'"a"', b"{", b"\xff\xff", b"[" * 200_000, b"1" * 100_000])
def test_a_head_that_is_no_object_is_no_message(text: bytes) -> None:
    data = struct.pack("<IQ", len(text), 0) + text
    with pytest.raises(wire.Gone):
        wire.receive(io.BytesIO(data))
    with pytest.raises(wire.Gone):
        asyncio.run(_taken(data))


def test_names_in_any_script_and_large_numbers_pass() -> None:
    head = {"name": "Ω 語 \U0001f600 \u2028", "number": 2**70}
    assert wire.receive(io.BytesIO(wire.packed(head))) == (head, b"")
    assert json.loads(wire.packed(head)[12:]) == head


def test_nobody_who_reads_is_told_as_gone() -> None:
    taking, giving = os.pipe()
    os.close(taking)
    pipe = os.fdopen(giving, "wb", 0)
    with pytest.raises(wire.Gone):
        wire.send(pipe, {"do": "ping"}, b"x" * 100_000)
    pipe.close()
