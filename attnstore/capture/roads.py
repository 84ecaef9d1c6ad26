"""This file chooses the road on which the maps of a loaded model are taken."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from torch import Tensor, nn
from transformers import PreTrainedModel

from attnstore.capture.captor import Captor, Road, arguments
from attnstore.capture.check import compare
from attnstore.capture.encode import Encoder
from attnstore.capture.facts import ModelFacts
from attnstore.capture.interface import Interface
from attnstore.capture.modules import Modules
from attnstore.capture.outputs import Outputs
from attnstore.capture.probe import probe_inputs
from attnstore.capture.quiet import quiet
from attnstore.capture.reference import library_maps
from attnstore.capture.stacks import kind_of
from attnstore.errors import NotCaptured

ROADS: tuple[Callable[[PreTrainedModel, Mapping[nn.Module, str]], Road], ...] = (Interface, Outputs, Modules)


def choose(model: PreTrainedModel, facts: ModelFacts, encoder: Encoder | None) -> Captor:
    """A captor on the first road whose maps equal the library's own on a small made-up input.

    Raises NotCaptured, with what was tried, if there is none.
    """
    doing = f"finding the attention maps of {facts.name} ({facts.class_name})"
    model.train(False)
    probe = probe_inputs(model, facts)
    facts = _looked_at(doing, model, facts, probe)
    tried = []
    for road in ROADS:
        try:
            return on_road(road, model, facts, encoder, probe)
        # A model that was not made for a road may break on it in any way; it is refused if it breaks on all.
        except Exception as error:
            tried.append(f"{road.__name__.lower()}: {error}")
    raise NotCaptured(
        doing,
        f"none of the {len(ROADS)} roads gives them [{' | '.join(tried)}]",
        "one on which every layer's map equals the library's own",
        "Use a model of another family, or declare this one in attnstore/capture/families",
    )


def on_road(
    road: Callable[[PreTrainedModel, Mapping[nn.Module, str]], Road],
    model: PreTrainedModel,
    facts: ModelFacts,
    encoder: Encoder | None,
    probe: Mapping[str, Tensor],
) -> Captor:
    """A captor on this road, checked with `probe`; whatever breaks comes through."""
    alone = next(iter(facts.kinds)) if len(facts.kinds) == 1 else None
    kinds: dict[nn.Module, str] = {module: kind_of(path, alone) for path, module in model.named_modules()}
    with quiet():
        taken = road(model, kinds)
    captor = Captor(model, replace(facts, capture=taken.name), encoder, taken)
    compare(captor, probe)
    return captor


def _looked_at(doing: str, model: PreTrainedModel, facts: ModelFacts, probe: Mapping[str, Tensor]) -> ModelFacts:
    """The facts with the tokens of an image as the model's own maps show them, for a model with one stack.

    Raises NotCaptured where those maps are causal and the model declares that they are not, or the other way round.
    """
    if len(facts.kinds) > 1:
        return facts
    ((kind, declared),) = facts.kinds.items()
    try:
        maps = library_maps(model, arguments(model, probe), [kind])[kind]
    except NotCaptured:
        raise
    except Exception as error:
        raise NotCaptured(
            doing,
            f"the model fails on a small input: {error}",
            f"a forward pass from {', '.join(probe)} alone",
            "If it has several towers, save the one of interest by itself",
        ) from error
    if facts.takes == "pixels":
        # One token per patch, and special ones that only the model itself counts.
        facts = replace(facts, max_length=maps[0].shape[-1])
    causal = all(not np.triu(one[0], 1).any() for one in maps)
    if causal == declared.causal:
        return facts
    raise NotCaptured(
        doing,
        "the library's own maps never look ahead" if causal else "the library's own maps look ahead",
        f"{'causal' if declared.causal else 'bidirectional'} attention, as the model declares",
        "If the mask is not lost, declare `causal` of this family in attnstore/capture/families",
    )
