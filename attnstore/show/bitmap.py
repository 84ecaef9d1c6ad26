"""This file writes the pixels of a large map as a PNG image, which is far smaller than a rectangle for each cell."""

import base64
import struct
import zlib

import numpy as np
from numpy.typing import NDArray

from attnstore.show.colour import ANCHORS, Scale

SIGNATURE = b"\x89PNG\r\n\x1a\n"
EIGHT_BITS, RGBA = 8, 6


def data_url(values: NDArray[np.float64], scale: Scale) -> str:
    """A PNG of values [row, column], a pixel a cell and NaN transparent, as a data: URL."""
    return "data:image/png;base64," + base64.b64encode(png(pixels(values, scale))).decode("ascii")


def pixels(values: NDArray[np.float64], scale: Scale) -> NDArray[np.uint8]:
    """The colours [row, column, rgba] of values [row, column]; the same as `colour.rgb` cell by cell."""
    # Like `Scale.share`; a scale without extent gives 0 everywhere.
    shares = np.clip((values * scale.shrink - scale.low * scale.shrink) / (scale.span or 1.0), 0.0, 1.0)
    places = np.linspace(0, 1, len(ANCHORS))
    known = ~np.isnan(shares)
    result = np.zeros((*values.shape, 4), dtype=np.uint8)
    for channel in range(3):
        levels = np.interp(np.where(known, shares, 0.0), places, [anchor[channel] for anchor in ANCHORS])
        result[..., channel] = np.round(levels)
    result[..., 3] = 255
    result[~known] = 0
    return result


def png(image: NDArray[np.uint8]) -> bytes:
    """A PNG file of an image [row, column, rgba]."""
    height, width, _ = image.shape
    # Each line begins with its filter type; 0 is none.
    lines = np.concatenate([np.zeros((height, 1), np.uint8), image.reshape(height, -1)], axis=1)
    header = struct.pack(">IIBBBBB", width, height, EIGHT_BITS, RGBA, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes())), (b"IEND", b""))
    return SIGNATURE + b"".join(_chunk(kind, data) for kind, data in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
