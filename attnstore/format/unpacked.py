"""This file says what an encoded chunk unpacks to, before it is unpacked: some bytes may stand for gigabytes of zeros.

Codecs take the size that a frame states and allocate it. Here the frames are walked by their headers, without decoding;
only where one compressor lies within another is the outer one decoded, once its size is known to be small.
"""

from collections.abc import Sequence

from numcodecs import zstd  # pyright: ignore[reportAttributeAccessIssue]  # compiled, without stubs

_ZSTD, _SKIPPED = 0xFD2FB528, 0x184D2A50
_BLOCK = 2**17
"""A block of zstd unpacks to no more."""

_BLOSC_HEADER = 16


def slack(size: int) -> int:
    """The most bytes that an honest codec makes of `size` bytes: compressors add little to what does not shrink."""
    return 2 * size + 4096


def check_encoded(data: bytes | memoryview, codecs: Sequence[str], size: int) -> None:
    """ValueError unless `data`, encoded by these codecs in order, can unpack to no more than `size` bytes and slack."""
    if len(data) > slack(size):
        raise ValueError(f"{len(data)} bytes for a chunk of {size}")
    chain = [name for name in codecs if name in ("zstd", "blosc", "crc32c")]
    if chain.count("zstd") > 1 or chain.count("blosc") > 1:
        raise ValueError(f"a chunk compressed by {', '.join(chain)}")
    while chain:
        outer, rest = chain.pop(), {"zstd", "blosc"} & set(chain)
        if outer == "crc32c":
            data = data[:-4]
            continue
        most = zstd_most(data) if outer == "zstd" else blosc_size(data)
        if most > (slack(size) if rest or outer == "zstd" else size):
            raise ValueError(f"it unpacks to {most} bytes, for a chunk of {size}")
        if not rest:
            return
        if outer == "blosc":
            raise ValueError("zstd within blosc")
        data = zstd.decompress(data)


def zstd_most(data: bytes | memoryview) -> int:
    """The most bytes that the zstd frames in `data` unpack to: what they state, else what their blocks can hold.

    ValueError where they are not whole frames, one after the other.
    """
    total = at = 0
    if not len(data):
        raise ValueError("no zstd frame")
    while at < len(data):
        magic = int.from_bytes(data[at : at + 4], "little")
        if magic & 0xFFFFFFF0 == _SKIPPED:
            at += 8 + int.from_bytes(data[at + 4 : at + 8], "little")
        elif magic == _ZSTD and at + 5 <= len(data):
            most, at = _frame(data, at + 4)
            total += most
        else:
            raise ValueError("no zstd frame")
    if at != len(data):
        raise ValueError("a zstd frame that is cut off")
    return total


def _frame(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """The most bytes that the frame, whose descriptor is at `at`, unpacks to, and where it ends."""
    described = data[at]
    flag, is_single = described >> 6, bool(described & 0x20)
    at += 1 + (not is_single) + (0, 1, 2, 4)[described & 3]
    width = (1 if is_single else 0, 2, 4, 8)[flag]
    stated = int.from_bytes(data[at : at + width], "little") + (256 if width == 2 else 0)
    at, held = at + width, 0
    while True:
        head = int.from_bytes(data[at : at + 3], "little")
        if at + 3 > len(data):
            raise ValueError("a zstd frame that is cut off")
        kind, size = head >> 1 & 3, head >> 3
        at += 3 + (1 if kind == 1 else size)
        held += _BLOCK if kind == 2 else size
        if head & 1:
            break
    return stated if width else held, at + (4 if described & 4 else 0)


def blosc_size(data: bytes | memoryview) -> int:
    """The bytes that a Blosc buffer states to unpack to; ValueError where it is not the whole of `data`."""
    if len(data) < _BLOSC_HEADER or int.from_bytes(data[12:16], "little") != len(data):
        raise ValueError("a Blosc buffer of another size than it states")
    size, block = (int.from_bytes(data[start : start + 4], "little") for start in (4, 8))
    if size and not 0 < block <= max(size, 2**16):
        raise ValueError(f"a Blosc buffer in blocks of {block} bytes")
    return size
