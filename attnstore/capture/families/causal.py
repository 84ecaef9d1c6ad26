"""This file declares decoders whose modules do not say that they are causal."""

from attnstore.capture.families.family import Family

CAUSAL = Family(("clip_text_model", "git", "imagegpt"), causal=True)
