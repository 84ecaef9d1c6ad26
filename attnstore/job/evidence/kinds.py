"""This file lists the kinds of evidence: what each depends on, and how its parts are made."""

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import partial

from attnstore.capture.evidence.contributions import find_reading
from attnstore.job.evidence.ablations import ablations, check_ablations
from attnstore.job.evidence.contributions import logit_contributions
from attnstore.job.evidence.gradient_maps import gradient_maps, integrated_gradients
from attnstore.job.evidence.gradients import gradients, importance
from attnstore.job.evidence.grams import grams
from attnstore.job.evidence.lab import Lab
from attnstore.job.evidence.mixing import mixing
from attnstore.job.evidence.norms import value_norms
from attnstore.job.evidence.part import Output, Part
from attnstore.job.evidence.predictions import predictions
from attnstore.job.evidence.weights import weights
from attnstore.job.rows import Placed

Parts = Callable[[Lab, Set[str]], Iterator[Part]]
"""(lab, names of the parts that are there) -> every part in order; those that are there may be left unfilled."""


@dataclass(frozen=True, slots=True)
class EvidenceKind:
    """How one kind of evidence is made. `scope` is segment, store, or part for a plan of its own.

    `depends_on` are the tables of the recipe that change what comes out, `needs_labels` says that nothing comes of a
    corpus without any where the task has labels, `needs` names other kinds that come with it; `check` raises what else
    can be known before anything is run.
    """

    scope: str
    parts: Parts
    depends_on: tuple[str, ...] = ()
    needs_labels: bool = False
    needs: tuple[str, ...] = ()
    check: Callable[[Lab], None] | None = None


def _of_segments(fill: Callable[[Lab, Sequence[Placed], Output], None]) -> Parts:
    """Evidence of single examples: a part for each segment, filled a batch at a time."""

    def parts(lab: Lab, there: Set[str]) -> Iterator[Part]:
        every = [f"{number:06d}" for number in range(len(lab.info.segments))]
        left = [number for number, name in enumerate(every) if name not in there]
        for number, placed in lab.placed(left):
            yield Part("segment", every[number], len(placed), partial(_filled, fill, lab, placed))

    return parts


def _filled(
    fill: Callable[[Lab, Sequence[Placed], Output], None], lab: Lab, placed: Sequence[Placed], output: Output
) -> None:
    for batch in lab.batches(placed):
        fill(lab, batch, output)


def _logit_contributions(lab: Lab, there: Set[str]) -> Iterator[Part]:
    """Contributions to logits, once it is known that this model's logits are sums."""
    yield from _of_segments(partial(logit_contributions, find_reading(lab.instrument)))(lab, there)


EVIDENCE_KINDS: dict[str, EvidenceKind] = {
    "weights": EvidenceKind("store", weights),
    "value_norms": EvidenceKind("segment", _of_segments(value_norms)),
    "mixing": EvidenceKind("segment", _of_segments(mixing)),
    "grams": EvidenceKind("segment", _of_segments(grams)),
    "predictions": EvidenceKind("segment", _of_segments(predictions), ("task",)),
    "gradients": EvidenceKind("segment", _of_segments(gradients), ("task",), needs_labels=True),
    "gradient_maps": EvidenceKind("segment", _of_segments(gradient_maps), ("task",), needs_labels=True),
    "integrated_gradients": EvidenceKind("segment", _of_segments(integrated_gradients), ("task",)),
    "importance": EvidenceKind("segment", _of_segments(importance), ("task",), needs_labels=True),
    "logit_contributions": EvidenceKind("segment", _logit_contributions, ("task",)),
    "ablations": EvidenceKind("part", ablations, ("task",), True, ("predictions",), check_ablations),
}
"""Every kind by its name in `[keep] evidence`, in the order in which they are made."""
