"""This file loads a model with the head of its task, and says how the task is scored."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attnstore.capture.answering import Answering
from attnstore.capture.captor import Captor
from attnstore.capture.facts import Takes
from attnstore.capture.model import Split, load
from attnstore.capture.own_task import OwnTask, find_function
from attnstore.capture.similarity import Similarity
from attnstore.capture.tasks import CausalLM, Classification, MaskedLM, Regression, Task, Translation
from attnstore.errors import BadInput

_HEADS = {
    "classification": {"text": "AutoModelForSequenceClassification", "pixels": "AutoModelForImageClassification"},
    "regression": {"text": "AutoModelForSequenceClassification", "pixels": "AutoModelForImageClassification"},
    "masked_lm": {"text": "AutoModelForMaskedLM"},
    "causal_lm": {"text": "AutoModelForCausalLM"},
    "similarity": {"text": ""},
    "answering": {"text": "AutoModelForQuestionAnswering"},
    "translation": {"text": "AutoModelForSeq2SeqLM"},
}
"""The transformers auto class that has the head of a task, by what the model reads; "" for the bare model."""


def load_for(
    task: str,
    name: str,
    *,
    takes: Takes,
    revision: str | None = None,
    device: str = "cpu",
    tokens: Split = "model",
    folder: Path = Path(),
) -> Captor:
    """The model with its task's head, ready for capture as `load` makes it; the bare model for task "".

    A function of one's own is looked for in `folder` too. BadInput for a task that such a model does not have, and for
    files without the head's weights.
    """
    heads = _HEADS.get(task, {})
    if ":" in task:
        heads = {takes: getattr(find_function(task, folder), "head", "")}
    if heads and takes not in heads:
        raise BadInput(
            f"loading {name} for {task}", f"a model that reads {takes}", f"one that reads {' or '.join(heads)}"
        )
    return load(name, revision=revision, device=device, tokens=tokens, head=heads.get(takes, ""))


def task_of(
    kind: str, captor: Captor, *, labels: Sequence[str], targets: str, seed: int, folder: Path = Path()
) -> Task:
    """How the examples of a store are scored with this model. BadInput where its head is another task's."""
    config: Any = captor.model.config
    outputs = getattr(config, "num_labels", 0)
    if kind == "classification":
        if labels and len(labels) != outputs:
            raise BadInput("reading task.labels", f"{len(labels)} classes", f"the {outputs} of {captor.facts.name}")
        return Classification(labels or [config.id2label[place] for place in range(outputs)])
    if kind == "regression":
        if outputs != 1:
            raise BadInput("reading task.kind", f"a regression with {outputs} numbers an example", "a model of one")
        return Regression()
    if kind == "masked_lm":
        return MaskedLM(targets, captor.encoder.mask_id, config.get_text_config().vocab_size, seed)
    if kind == "causal_lm":
        return CausalLM()
    if kind == "similarity":
        return Similarity(captor.encoder.pad_id)
    if kind == "answering":
        return Answering()
    if kind == "translation":
        end = config.eos_token_id
        return Translation(end[0] if isinstance(end, list) else end)
    if ":" in kind:
        return OwnTask(kind, find_function(kind, folder))
    raise BadInput("reading task.kind", repr(kind), f"one of {', '.join(_HEADS)}")
