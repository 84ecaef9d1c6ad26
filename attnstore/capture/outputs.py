"""This file is the second road: hooks on the outputs that a model's classes declare as recordable."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.utils.output_capturing import OutputRecorder

from attnstore.capture.handover import Handover
from attnstore.errors import NotCaptured


class _Task(NamedTuple):
    """One declared output: where its modules are, and its place in their output."""

    key: str
    module_class: type[nn.Module] | None
    class_name: str | None
    layer_name: str | None
    place: int


class Outputs:
    """Maps from the modules and tuple places that transformers itself would record as attentions."""

    name = "outputs"

    def __init__(self, model: PreTrainedModel, kinds: Mapping[nn.Module, str]) -> None:
        model.set_attn_implementation("eager")
        self._model, self._kinds = model, kinds
        self._places = list(_places(model, "", []))
        if not self._places:
            raise NotCaptured(
                f"looking for the recordable attentions of {type(model).__name__}",
                "its classes declare none",
                "attentions among the recordable outputs",
            )

    def forward(self, inputs: Mapping[str, Any], hand: Handover) -> Any:
        """One forward pass whose maps go to `hand`; what the model returns."""

        def hook(module: nn.Module, index: int, declared_cross: bool) -> Any:
            kind = "cross" if declared_cross else self._kinds[module]

            def take(_module: nn.Module, _args: Any, output: Any) -> None:
                weights = output[index] if isinstance(output, tuple) else output
                if isinstance(weights, Tensor):
                    hand.take(kind, weights)

            return take

        hooks = [module.register_forward_hook(hook(module, index, cross)) for module, index, cross in self._places]
        try:
            return self._model(**inputs)
        finally:
            for one in hooks:
                one.remove()


def _places(module: nn.Module, path: str, inherited: list[_Task]) -> Iterator[tuple[nn.Module, int, bool]]:
    """Each module to hook, the place of the map in its output, and whether it is declared as cross-attention.

    A model inside a model follows its own declaration, as in transformers.
    """
    tasks = list(_declared(module)) if isinstance(module, PreTrainedModel) else inherited
    for name, child in module.named_children():
        yield from _places(child, f"{path}.{name}", tasks)
    for task in tasks:
        by_class = task.module_class is not None and isinstance(module, task.module_class)
        by_name = task.class_name is not None and path.endswith(task.class_name)
        where = None if task.layer_name is None else "." + task.layer_name.strip(".") + "."
        if (by_class or by_name) and (where is None or where in path + "."):
            yield module, task.place, "cross" in task.key


def _declared(model: PreTrainedModel) -> Iterator[_Task]:
    for key, declared in (getattr(model, "_can_record_outputs", None) or {}).items():
        if not key.endswith("attentions"):
            continue
        for one in declared if isinstance(declared, list) else [declared]:
            if isinstance(one, OutputRecorder):
                yield _Task(key, one.target_class, one.class_name, one.layer_name, one.index)
            elif isinstance(one, str):
                yield _Task(key, None, one, None, 1)
            else:
                yield _Task(key, one, None, None, 1)
