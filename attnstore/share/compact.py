"""This file makes a store of the same examples in fewer, larger segments."""

from contextlib import closing
from pathlib import Path

from attnstore.errors import BadInput
from attnstore.format.arrays import SEGMENT_BYTES
from attnstore.format.manifest import PlannedSegment, StoreInfo
from attnstore.format.quantise import PRECISIONS
from attnstore.share.making import Wanted
from attnstore.share.rewrite import check_free, write_store
from attnstore.share.source import Piece, Source
from attnstore.store.store import open as open_store


def compact(source: str | Path, target: str | Path, segment_bytes: int = SEGMENT_BYTES) -> Path:
    """Write a new store with the same examples in segments of up to `segment_bytes` of maps, unpacked; its folder.

    Neighbouring segments are joined while they fit, and none is cut. Every answer stays as it is; annotations lie in
    the segments then, and facts and evidence in additions of their own. BadInput where `target` is taken or the
    source is unfinished. The source is not changed, and `target` appears whole or not at all.
    """
    doing, place = f"compacting {source}", Path(target)
    check_free(place, doing)
    if segment_bytes < 1:
        raise BadInput(doing, f"segment_bytes={segment_bytes}", "a positive number of bytes")
    with closing(open_store(source)) as store:
        found = Source(store, 0, doing)
        segments: list[list[Piece]] = []
        held = 0
        for number, planned in enumerate(found.info.segments):
            size = raw_bytes(found.info, planned)
            if not segments or held + size > segment_bytes:
                segments.append([])
                held = 0
            segments[-1].append(found.whole(number, planned.first))
            held += size
        return write_store(Wanted(place, doing, [found], found.info, segments))


def raw_bytes(info: StoreInfo, planned: PlannedSegment) -> int:
    """Bytes of all weights of a segment, before compression; those of every layer and head, kept or not."""
    item = PRECISIONS[info.precision].itemsize
    return sum(kind.layers * kind.heads * planned.cells[name] * item for name, kind in info.kinds.items())
