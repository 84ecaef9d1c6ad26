"""This file declares families whose softmax has an attention sink, so that rows sum to less than 1."""

from attnstore.capture.families.family import Family

AT_MOST_ONE = "at most one: a learned attention sink takes the rest"

SINKS = Family(("gpt_oss", "openai_privacy_filter", "mimo_v2_flash", "flint", "hy_v4"), row_sums=AT_MOST_ONE)
