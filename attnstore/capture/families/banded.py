"""This file declares families whose maps are bands along the diagonal and not [query, key]."""

from attnstore.capture.families.family import Family

BANDED = Family(
    ("longformer", "led"),
    refused=(
        "its maps hold a sliding window around each query and a few global keys, padded to the window's size, "
        "and not a weight for every key"
    ),
)
