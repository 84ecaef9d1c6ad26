"""This file declares ALBERT, whose layers share parameters."""

from typing import Any

from attnstore.capture.families.family import Family


def _layers(config: Any) -> int:
    return int(config.num_hidden_layers * config.inner_group_num)


def _groups(config: Any) -> tuple[int, ...]:
    per_group = config.num_hidden_layers / config.num_hidden_groups
    return tuple(
        int(layer / per_group) * config.inner_group_num + inner
        for layer in range(config.num_hidden_layers)
        for inner in range(config.inner_group_num)
    )


ALBERT = Family(("albert",), groups=_groups, layers=_layers)
