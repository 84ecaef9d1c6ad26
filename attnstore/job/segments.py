"""This file reads a planned corpus again, segment by segment, and refuses one that changed meanwhile."""

import hashlib
from collections.abc import Iterator, Sequence

from attnstore.errors import BadInput
from attnstore.job.plan import Plan, identity
from attnstore.job.segment import Segment
from attnstore.job.source import Prepared, Source


def segments(plan: Plan, source: Source, wanted: Sequence[int]) -> Iterator[Segment]:
    """The wanted segments in order, from one pass over the corpus. BadInput where it is not what was planned."""
    ends, chosen = [segment.stop for segment in plan.info.segments], frozenset(wanted)
    segment, digest = Segment(0, 0), hashlib.sha256()
    number = 0
    for found in source.examples():
        if isinstance(found, Prepared):
            if number >= ends[-1]:
                raise _changed(f"more than {ends[-1]} examples")
            if number == ends[segment.number]:
                if segment.number in chosen:
                    yield _unchanged(segment, digest.hexdigest(), plan)
                segment, digest = Segment(segment.number + 1, number), hashlib.sha256()
            segment.prepared.append(found) if segment.number in chosen else None
            number += 1
        elif segment.number in chosen:
            segment.skipped.append(found)
        digest.update(identity(found))
    if number != ends[-1]:
        raise _changed(f"{number} examples, planned {ends[-1]}")
    if segment.number in chosen:
        yield _unchanged(segment, digest.hexdigest(), plan)


def _unchanged(segment: Segment, digest: str, plan: Plan) -> Segment:
    if digest != plan.digests[segment.number]:
        planned = plan.info.segments[segment.number]
        raise _changed(f"examples {planned.first} to {planned.stop - 1} are not what they were")
    return segment


def _changed(found: str) -> BadInput:
    remedy = "Leave the corpus alone while it is read; run the same command again, or name another store"
    return BadInput("reading the corpus again", found, "the corpus that was planned", remedy)
