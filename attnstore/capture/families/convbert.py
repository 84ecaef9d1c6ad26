"""This file declares ConvBERT, some of whose heads are convolutions and have no map."""

from typing import Any

from attnstore.capture.families.family import Family


def _heads(config: Any) -> int:
    return max(1, int(config.num_attention_heads) // int(config.head_ratio))


CONVBERT = Family(("convbert",), heads=_heads)
