"""This file makes tiny models with the heads of tasks, and a labelled corpus, for the tests of evidence."""

import json
from pathlib import Path
from typing import Any

import torch
import transformers

from attnstore.job.recipe import Recipe
from tests.capture.conftest import FAMILIES, TOKENIZERS

TEXTS = (
    ("a", "the cat sat on a mat", "good"),
    ("b", "a dog barked at night , and the river ran down .", "bad"),
    ("c", "rivers", None),
    ("d", "the mats sat at night", "good"),
    ("e", "a dog", "bad"),
)
LABELS = ["good", "bad"]

HEADS = {
    "classification": {
        "bert": "BertForSequenceClassification",
        "albert": "AlbertForSequenceClassification",
        "gpt2": "GPT2ForSequenceClassification",
        "llama": "LlamaForSequenceClassification",
        "vit": "ViTForImageClassification",
        "deberta_v2": "DebertaV2ForSequenceClassification",
    },
    "masked_lm": {"bert": "BertForMaskedLM", "albert": "AlbertForMaskedLM", "mpnet": "MPNetForMaskedLM"},
    "causal_lm": {"gpt2": "GPT2LMHeadModel", "llama": "LlamaForCausalLM", "bloom": "BloomForCausalLM"},
    "regression": {"bert": "BertForSequenceClassification"},
    "answering": {"bert": "BertForQuestionAnswering"},
    "translation": {"t5": "T5ForConditionalGeneration", "bart": "BartForConditionalGeneration"},
}
"""The class of each family's model for each task."""


def task_model(place: Path, family: str, task: str, **config_keys: Any) -> Path:
    """A tiny random model of a family with the head of a task, saved with its tokenizer; the folder."""
    config_class, sizes, _, tokenizer = FAMILIES[family]
    special = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2} if tokenizer == "roberta" else {}
    if tokenizer == "gpt2":
        special = {"pad_token_id": 0, "bos_token_id": 0, "eos_token_id": 0}
    if task == "classification":
        config_keys = {
            "id2label": dict(enumerate(LABELS)),
            "label2id": {n: i for i, n in enumerate(LABELS)},
        } | config_keys
    if task == "regression":
        config_keys = {"num_labels": 1, "problem_type": "regression"} | config_keys
    torch.manual_seed(len(family))
    config = getattr(transformers, config_class)(**{**special, **sizes, **config_keys})
    model = getattr(transformers, HEADS[task][family])._from_config(config, attn_implementation="eager")
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() > 1:
                weight.normal_(0.0, 0.3)
    folder = place / f"{family}-{task}"
    transformers.utils.logging.disable_progress_bar()
    model.save_pretrained(folder)
    transformers.utils.logging.enable_progress_bar()
    if tokenizer is not None:
        TOKENIZERS[tokenizer]().save_pretrained(folder)
    return folder


def labelled(folder: Path) -> Path:
    """The corpus of TEXTS as JSON Lines."""
    path = folder / "labelled.jsonl"
    rows = [{"name": name, "text": text, "label": label} for name, text, label in TEXTS]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def evidence_recipe(corpus: Path, model: Path, evidence: tuple[str, ...], task: str = "", **keys: Any) -> Recipe:
    """A recipe that keeps evidence; `keys` replace single keys, dots written as two underscores."""
    value: dict[str, Any] = {
        "corpus": {"kind": "jsonl", "path": str(corpus)},
        "model": {"name": str(model)},
        "keep": {"evidence": list(evidence)},
        "task": {"kind": task},
    }
    return Recipe.build(value, {key.replace("__", "."): item for key, item in keys.items()})
