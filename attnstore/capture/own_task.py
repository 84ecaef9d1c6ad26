"""This file lets a recipe name a function of its author that scores examples."""

import importlib
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from attnstore.capture.instrument import Inputs
from attnstore.capture.tasks import Item, Scored
from attnstore.errors import BadInput


class OwnTask:
    """`function(model, inputs, items)` gives one score for each item, None for one that it cannot score.

    It calls `model(**inputs)` itself, once or often, with these inputs or others that it made; heads are off whenever
    it does. Its attribute `head` may name the transformers auto class to load, such as AutoModelForCausalLM. It gives
    no loss, so that no gradients can be had. A model that generates has to do so without a cache.
    """

    needs_labels = False

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name, self.function = name, function

    def gold(self, item: Item) -> str | None:
        return item.label

    def inputs(self, batch: Sequence[Item], inputs: Inputs) -> Inputs:
        return inputs

    def run(self, model: nn.Module, batch: Sequence[Item], inputs: Inputs) -> Scored:
        """The function's scores, without a loss. BadInput where it does not give a number for each item."""
        given = self.function(model, inputs, batch)
        values = given.tolist() if hasattr(given, "tolist") else list(given)
        if len(values) != len(batch) or not all(one is None or isinstance(one, int | float) for one in values):
            raise BadInput(f"scoring with {self.name}", f"{values!r:.80}", f"a number for each of {len(batch)} items")
        scores = [None if one is None or not math.isfinite(one) else float(one) for one in values]
        return Scored(
            torch.full((len(batch),), torch.nan),
            torch.tensor([int(one is not None) for one in scores]),
            score=scores,
        )

    def score(self, output: Any, batch: Sequence[Item], inputs: Inputs) -> Scored:
        raise BadInput(
            f"asking {self.name} for a loss", "a score alone", "a task with a loss", "Leave out what needs one"
        )


def find_function(name: str, folder: Path) -> Callable[..., Any]:
    """The function of a module that Python finds, or that lies in `folder`. BadInput where there is none."""
    module, _, function = name.partition(":")
    sys.path.insert(0, str(folder.resolve()))
    try:
        found = getattr(importlib.import_module(module), function, None)
    except ImportError as error:
        raise BadInput(f"reading task.kind = {name!r}", str(error), "a module that can be imported") from error
    finally:
        sys.path.pop(0)
    if not callable(found):
        raise BadInput(f"reading task.kind = {name!r}", f"no function {function!r} in {module}", "a function")
    return found  # type: ignore[no-any-return]
