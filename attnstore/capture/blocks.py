"""This file lets a pass begin in the middle of a model: blocks below give again what they gave before."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from torch import nn
from transformers import PreTrainedModel


class Blocks:
    """The repeated blocks of a model that hold the heads' output modules, by the order of their calls.

    A block is the outermost entry of a module list; one that layers share is called once for each of them.
    """

    def __init__(self, model: PreTrainedModel, outputs: Sequence[nn.Module]) -> None:
        wanted = {id(module) for module in outputs}
        self._outputs = list({id(module): module for module in outputs}.values())
        self._around: dict[int, nn.Module] = {}
        for path, module in model.named_modules():
            if id(module) in wanted and (block := _block_of(model, path)) is not None:
                self._around[id(module)] = block
        self._blocks: list[nn.Module] = list({id(block): block for block in self._around.values()}.values())
        self._kept: list[Any] = []
        self._layers: list[int] = []

    def __len__(self) -> int:
        """Blocks of the pass that was kept."""
        return len(self._kept)

    def around(self, output: nn.Module) -> nn.Module | None:
        """The block that holds an output module; None where no list of modules does."""
        return self._around.get(id(output))

    def of(self, circuit: int) -> int:
        """The block in whose call the heads of a layer work, by the layer's place in a pass."""
        done = 0
        for block, layers in enumerate(self._layers):
            done += layers
            if circuit < done:
                return block
        return 0

    @contextmanager
    def keep(self) -> Iterator[None]:
        """Watch the passes inside, and hold what each block gave in the last of them."""
        reached = 0

        def count(module: nn.Module, args: Any) -> None:
            nonlocal reached
            reached += 1

        def before(module: nn.Module, args: Any) -> None:
            nonlocal reached
            reached = 0

        def after(module: nn.Module, args: Any, output: Any) -> None:
            self._kept.append(output)
            self._layers.append(reached)

        self._kept, self._layers = [], []
        hooks = [module.register_forward_pre_hook(count) for module in self._outputs]
        for block in self._blocks:
            hooks += [block.register_forward_pre_hook(before), block.register_forward_hook(after)]
        try:
            yield
        finally:
            for one in hooks:
                one.remove()

    @contextmanager
    def skipping(self, start: int) -> Iterator[int]:
        """Inside, the first `start` blocks give what was kept; how many layers of heads they hold."""
        called = 0

        def again(forward: Callable[..., Any]) -> Callable[..., Any]:
            def give(*args: Any, **kwargs: Any) -> Any:
                nonlocal called
                called += 1
                return self._kept[called - 1] if called <= start else forward(*args, **kwargs)

            return give

        if start:
            for block in self._blocks:
                block.__dict__["forward"] = again(block.forward)
        try:
            yield sum(self._layers[:start])
        finally:
            if start:
                for block in self._blocks:
                    del block.__dict__["forward"]


def _block_of(model: nn.Module, path: str) -> nn.Module | None:
    """The first module on the way down to `path` that is an entry of a module list."""
    above: nn.Module = model
    for step in path.split("."):
        below = getattr(above, step)
        if isinstance(above, nn.ModuleList):
            found: nn.Module = below
            return found
        above = below
    return None
