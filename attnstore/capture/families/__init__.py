"""This file lists the families with declared exceptions; every other model follows the general rules."""

from attnstore.capture.families.albert import ALBERT
from attnstore.capture.families.banded import BANDED
from attnstore.capture.families.causal import CAUSAL
from attnstore.capture.families.convbert import CONVBERT
from attnstore.capture.families.family import Family
from attnstore.capture.families.sinks import SINKS
from attnstore.capture.families.xlnet import XLNET

FAMILIES = (ALBERT, BANDED, CAUSAL, CONVBERT, SINKS, XLNET)


def family_of(model_type: str) -> Family:
    """The declared exceptions of a configuration's `model_type`; none for most."""
    for family in FAMILIES:
        if model_type in family.model_types:
            return family
    return Family((model_type,))
