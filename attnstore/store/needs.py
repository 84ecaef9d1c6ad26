"""This file refuses a question whose annotation a store lacks, and says how it gets it."""

from collections.abc import Mapping
from typing import NamedTuple

from attnstore.catalogue.question import Question
from attnstore.errors import NotStored
from attnstore.store.database import Database


class _Need(NamedTuple):
    there: str
    found: str
    expected: str
    remedy: str


_WORDS = (
    "No model is needed: attnstore annotate STORE --words FILE.conllu. Or ingest again with "
    '[words] source = "gold" or "spacy:PIPELINE"'
)

_NEEDS: Mapping[str, _Need] = {
    "words": _Need("words", "the store has no words", "words of each example", _WORDS),
    "relations": _Need(
        "words where deprel is not null", "no word has a dependency relation", "words with governors", _WORDS
    ),
    "tags": _Need(
        "words where upos is not null or xpos is not null", "no word has a part of speech", "tagged words", _WORDS
    ),
    "mentions": _Need(
        "mentions",
        "the store has no mentions of entities",
        "mentions with their clusters",
        "No model is needed: attnstore annotate STORE --mentions FILE. Or ingest again with "
        '[corpus] kind = "conllu" (Entity= in MISC), "gap", or "jsonl" with `mentions`',
    ),
    "links": _Need(
        "links",
        "the store has no links between spans",
        "annotated pairs of word spans",
        "No model is needed: attnstore annotate STORE --links FILE. Or ingest again with "
        '[corpus] kind = "links", or "jsonl" with `links`',
    ),
    "parts": _Need(
        "tokens where part = 1",
        "no example has a second part",
        "pairs of texts",
        'Ingest a corpus of pairs, which needs the model: [corpus] kind = "pairs", or a key `second`',
    ),
    "labels": _Need(
        "examples where label is not null",
        "no example has a label",
        "labelled examples",
        "No model is needed: attnstore annotate STORE --labels FILE. Or name the column: [corpus] columns.label",
    ),
    "triggers": _Need(
        "tokens where trigger",
        "no text has a trigger",
        "pairs of a clean text and one with a trigger",
        'Ingest a corpus that says where it is, which needs the model: [corpus] kind = "jsonl" with `trigger`, '
        "`pair_id` and `condition` (docs/trojan.py writes one)",
    ),
    "patterns": _Need(
        "pattern_labels",
        "no map was given a pattern",
        "maps with patterns",
        "No model is needed: attnstore annotate STORE --patterns FILE",
    ),
    "images": _Need(
        "examples where luminance is not null",
        "no example is an image",
        "a corpus of images",
        'Ingest one, which needs a vision model: [corpus] kind = "images"',
    ),
    "grid": _Need(
        'tokens where "row" is not null',
        "no token has a place on a grid",
        "patches of images, or codes with rows and cols",
        'Ingest them, which needs the model: [corpus] kind = "images", or "tokens" with `rows` and `cols`',
    ),
    "documents": _Need(
        "examples where document is not null",
        "no example belongs to a document",
        "examples with documents",
        "Ingest a corpus that names them, which needs the model: kind conllu, pairs, or a key `document`",
    ),
}


def _evidence(name: str, table: str, expected: str, *, task: bool = False, more: str = "") -> _Need:
    settings = f"--set 'keep.evidence=[\"{name}\"]'{more}" + (" and a [task]" if task else "")
    remedy = f"The model is needed: run the recipe of the store again, with {settings}, into the same store"
    return _Need(f"stored.{table}", f"the store has no {name.replace('_', ' ')}", expected, remedy)


def _plan(plan: str, there: str, expected: str, *, more: str = "") -> _Need:
    more = f" --set 'ablations.plan=[\"{plan}\"]'{more}"
    need = _evidence("ablations", f"head_sets where {there}", expected, task=True, more=more)
    return need._replace(found=f"the store has no ablations of the plan {plan}")


def _switched_off(intervention: str) -> _Need:
    there = f"plan = 'heads' and intervention = '{intervention}'"
    more = f" --set 'ablations.intervention=[\"{intervention}\"]'"
    need = _plan("heads", there, "scores of the task with each head switched off so", more=more)
    return need._replace(found=f"no head of the store was switched off by intervention {intervention}")


_EVIDENCE: Mapping[str, _Need] = {
    **{
        need: _evidence(name, need, expected)
        for need, name, expected in (
            ("mixing_facts", "mixing", "what layers mix into tokens"),
            ("identity_facts", "mixing", "what layers mix into tokens"),
            ("value_grams", "grams", "products of what heads move"),
            ("value_norms", "value_norms", "lengths of what heads move"),
            ("output_norms", "value_norms", "lengths of what heads add"),
            ("head_weights", "weights", "numbers of the weights of each head"),
        )
    },
    **{
        need: _evidence(name, need, expected, task=True)
        for need, name, expected in (
            ("predictions", "predictions", "what the model predicts for each example"),
            ("gradient_facts", "gradients", "gradients of the loss by the weights of maps"),
            ("importance_facts", "importance", "gradients of the loss by gates on heads"),
            ("attribution_facts", "integrated_gradients", "shares of weights in a class's logit"),
            ("logit_contributions", "logit_contributions", "what heads add to logits"),
        )
    },
    "ablated_heads": _plan("heads", "plan = 'heads'", "scores of the task with each head switched off"),
    **{f"ablated_{intervention}": _switched_off(intervention) for intervention in ("zero", "uniform", "mean")},
    "ablated_layers": _plan("layers", "plan = 'layers'", "scores of the task with each layer switched off"),
    "pruned_heads": _plan("pruning", "plan = 'pruning'", "scores of the task with more and more heads switched off"),
    "searched_heads": _plan("greedy", "plan in ('greedy', 'beam')", "sets of heads that a search switched off"),
}
"""What needs the model: the table that must have rows, the evidence that fills it, and what it holds."""


def check_needs(question: Question, values: Mapping[str, object], database: Database) -> None:
    """Raise NotStored where the store has examples and none has what the question needs."""
    doing = f"asking {question.name}"
    for need in question.needs:
        if not need.holds(values):
            continue
        there, found, expected, remedy = _NEEDS.get(need.annotation) or _EVIDENCE[need.annotation]
        text = f"select exists(from examples) as asked, exists(from {there}) as there"
        row = database.run(text, doing=doing).to_pylist()[0]
        if row["asked"] and not row["there"]:
            raise NotStored(doing, found, expected, remedy)


def there(annotation: str) -> str:
    """The table that SQL can name, with a condition, which has rows where the store has the annotation."""
    return (_NEEDS.get(annotation) or _EVIDENCE[annotation]).there.removeprefix("stored.")


def lacking(evidence: str, doing: str, found: str) -> NotStored:
    """The error where a table of evidence has not what is needed of an example."""
    need = _EVIDENCE[evidence]
    return NotStored(doing, found, need.expected, need.remedy)
