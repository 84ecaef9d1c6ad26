"""This file scores how alike a model finds the two texts of a pair."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from attnstore.capture.encode import collate
from attnstore.capture.instrument import Inputs
from attnstore.capture.tasks import Item, Scored, number_of
from attnstore.errors import BadInput
from attnstore.text.encoded import Encoded


class Similarity:
    """The cosine of two texts that are fed apart, each the mean of its tokens; the label is how alike they are.

    The score is the cosine, the loss its squared distance from the label, which is of use where labels lie between -1
    and 1; correlations do not mind their scale.
    """

    needs_labels = True

    def __init__(self, pad_id: int) -> None:
        self.pad_id = pad_id

    def gold(self, item: Item) -> str | None:
        number_of(item)
        return item.label

    def inputs(self, batch: Sequence[Item], inputs: Inputs) -> Inputs:
        """The first texts of all pairs, then the second ones: twice as many rows as examples."""
        device = next(iter(inputs.values())).device
        apart = [_part(item, part) for part in (0, 1) for item in batch]
        return {name: value.to(device) for name, value in collate(apart, None, self.pad_id).items()}

    def score(self, output: Any, batch: Sequence[Item], inputs: Inputs) -> Scored:
        hidden: Tensor = output.last_hidden_state
        is_real = inputs["attention_mask"][..., None].to(hidden.dtype)
        means = (hidden * is_real).sum(1) / is_real.sum(1)
        cosine = functional.cosine_similarity(means[: len(batch)], means[len(batch) :])
        gold = torch.tensor([number_of(item) for item in batch], device=cosine.device)
        return Scored((cosine - gold).square(), (~gold.isnan()).long(), score=cosine.detach().tolist())


def _part(item: Item, part: int) -> Encoded:
    """One text of a pair between the special tokens that stand around both, such as [CLS] and the last [SEP]."""
    whole = item.source
    own = [place for place, of in enumerate(whole.parts) if of == part]
    told = [place for place, of in enumerate(whole.parts) if of is not None]
    if item.second is None or not told:
        raise BadInput(f"scoring {item.name}", "one text", "two texts to compare", "Name the second: columns.second")
    places = [*range(told[0]), *own, *range(told[-1] + 1, len(whole))]
    nothing = (None,) * len(places)
    return Encoded(
        tuple(whole.ids[place] for place in places),
        tuple(whole.texts[place] for place in places),
        nothing,
        nothing,
        (0,) * len(places),
        tuple(whole.special[place] for place in places),
    )
