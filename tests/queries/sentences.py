"""This file makes sentences with parses, and maps for them, for the tests of questions."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from attnstore.format.manifest import Kind
from tests.store.making import Made, Text

ONE = {"encoder": Kind(1, 1, 1, "source", "source", False)}

# Five tokens [CLS] w1 w2 w3 [SEP].
SYNTAX = np.array(
    [
        [0.2, 0.2, 0.2, 0.2, 0.2],
        [0.5, 0.1, 0.1, 0.25, 0.05],
        [0.1, 0.3, 0.35, 0.2, 0.05],
        [0.05, 0.6, 0.2, 0.1, 0.05],
        [0.1, 0.1, 0.1, 0.1, 0.6],
    ],
    np.float32,
)


def sentence(forms: Sequence[str], parse: Sequence[tuple[int | None, str]] = (), **columns: Sequence[Any]) -> Text:
    """[CLS] forms [SEP], a token a word; `parse` gives governor and relation of each."""
    words = [
        {
            "form": form,
            "governor": parse[index][0] if parse else None,
            "deprel": parse[index][1] if parse else None,
            **{name: values[index] for name, values in columns.items()},
        }
        for index, form in enumerate(forms)
    ]
    special: list[str | None] = ["cls", *[None] * len(forms), "sep"]
    return Text(["[CLS]", *forms, "[SEP]"], special, [-1, *range(len(forms)), -1], words)


def one(text: Text, weights: Any, name: str = "x") -> Made:
    return Made(name, text, {"encoder": np.asarray(weights, np.float32)[None, None]})


def pointing(keys: Sequence[int]) -> Any:
    """A map whose rows look at these keys with 0.9, and at all others alike."""
    n = len(keys)
    weights = np.full((n, n), 0.1 / (n - 1))
    weights[np.arange(n), keys] = 0.9
    return weights
