"""This file gives the golden store evidence: random rows for every table that only the model can fill."""

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from attnstore.format import names
from attnstore.format.commit import commit, publish, seal, stage
from attnstore.format.evidence_tables import EVIDENCE_TABLES
from attnstore.format.manifest import read_store
from attnstore.format.parquet import TableWriter
from attnstore.job.evidence.listed import listed
from attnstore.reduce import circuits
from tests.store.making import ENCODER, Made

LAYERS, HEADS = ENCODER.layers, ENCODER.heads
Rows = list[pa.RecordBatch]


def _value_norms(rng: np.random.Generator, made: Sequence[Made]) -> Rows:
    return [
        listed("value_norms", number, "encoder", n, {"value_norm": rng.uniform(0.2, 3, (n, LAYERS * HEADS))})
        for number, n in enumerate(len(one.source.tokens) for one in made)
    ]


def _output_norms(rng: np.random.Generator, made: Sequence[Made]) -> Rows:
    return [
        listed(
            "output_norms",
            number,
            "encoder",
            n,
            {"output_norm": rng.uniform(0.2, 3, (n, LAYERS * HEADS)), "layer_norm": rng.uniform(1, 5, (n, LAYERS))},
        )
        for number, n in enumerate(len(one.source.tokens) for one in made)
    ]


def _weights(table: str) -> Callable[[np.random.Generator, Sequence[Made]], Rows]:
    """The rows that random matrices [head, 10, 4] of each layer give, of a model with norms before its heads."""

    def rows(rng: np.random.Generator, made: Sequence[Made]) -> Rows:
        found: list[dict[str, Any]] = []
        written: list[NDArray[np.float64]] = []
        rng = np.random.default_rng(31)  # all three tables are about the same matrices
        for layer in range(LAYERS):
            query, key, value = rng.normal(size=(3, HEADS, 10, 4))
            output = rng.normal(size=(HEADS, 4, 10))
            output[1] = np.linalg.pinv(value[1])  # a head that copies
            columns: dict[str, Any] = circuits.weight_numbers(query, key, value, output) | {
                "head": np.arange(HEADS),
                "qk_bilinear": [True] * HEADS,
            }
            if table == "compositions":
                for relation, read in circuits.reads(query, key, value, output).items():
                    for earlier, wrote in enumerate(written):
                        scores = circuits.composition(wrote, read)
                        found += [
                            {
                                "kind": "encoder", "relation": relation, "layer_a": earlier, "layer_b": layer,
                                "head_a": int(a), "head_b": int(b), "score": score, "random": 10**-0.5,
                                "approximate": False, "folded": True,
                            }
                            for (a, b), score in np.ndenumerate(scores)
                        ]  # fmt: skip
                written.append(circuits.writes(value, output))
                continue
            if table == "head_overlaps":
                columns = dict(circuits.overlaps(output))
            found += [
                {"kind": "encoder", "layer": layer, **{name: values[row] for name, values in columns.items()}}
                for row in range(HEADS)  # three heads make three pairs
            ]
        return [pa.RecordBatch.from_pylist(found, schema=EVIDENCE_TABLES[table])]

    return rows


def _mixing_facts(rng: np.random.Generator, made: Sequence[Made]) -> Rows:
    names = [field.name for field in list(EVIDENCE_TABLES["mixing_facts"])[3:]]
    return [
        listed(
            "mixing_facts",
            number,
            "encoder",
            n,
            {name: rng.uniform(0, 1 if name in ("self_weight", "cosine") else 4, (n, LAYERS)) for name in names},
        )
        for number, n in enumerate(len(one.source.tokens) for one in made)
    ]


def _identity_facts(rng: np.random.Generator, made: Sequence[Made]) -> Rows:
    found = []
    for number, n in enumerate(len(one.source.tokens) for one in made):
        nearest = np.where(
            rng.random((n, LAYERS + 1)) < 0.6, np.arange(n)[:, None], rng.integers(0, n, (n, LAYERS + 1))
        )
        cosine, length = rng.uniform(-0.2, 1, (n, LAYERS + 1)), rng.uniform(1, 5, (n, LAYERS + 1))
        cosine[:, 0], nearest[:, 0] = 1, np.arange(n)
        columns = {"cosine": cosine, "nearest": nearest, "hidden_norm": length}
        found.append(listed("identity_facts", number, "encoder", n, columns))
    return found


def _value_grams(rng: np.random.Generator, made: Sequence[Made]) -> Rows:
    """Gram matrices of random vectors of five numbers, one a head and one for the stream."""
    schema, found = EVIDENCE_TABLES["value_grams"], []
    row, column = np.triu_indices(HEADS)
    for number, one in enumerate(made):
        for layer in range(LAYERS):
            rows = []
            for token in range(len(one.source.tokens)):
                values: dict[str, Any] = {"example": number, "kind": "encoder", "layer": layer, "token": token}
                for suffix in ("", "_ln"):
                    vectors = rng.normal(size=(HEADS + 1, 5))
                    products = vectors @ vectors.T
                    values[f"gram{suffix}"] = products[row, column].tolist()
                    values[f"stream{suffix}"] = products[:HEADS, HEADS].tolist()
                    values[f"square{suffix}"] = float(products[HEADS, HEADS])
                rows.append(values | {"scale": float(rng.uniform(0.5, 2))})
            found.append(pa.RecordBatch.from_pylist(rows, schema=schema))
    return found


def _gradient_facts(rng: np.random.Generator, made: Sequence[Made]) -> Rows:
    """Random sums over pairs of classes; the last example has none that are finite."""
    rows = []
    for number, one in enumerate(made):
        tokens = zip(one.source.tokens, one.source.special, strict=True)
        classes = [special or ("punct" if text in (".", ",") else "other") for text, special in tokens]
        sizes = {name: classes.count(name) for name in sorted(set(classes))}
        for (query, n_queries), (key, n_keys) in itertools.product(sizes.items(), repeat=2):
            pairs = n_queries * n_keys
            drawn = rng.uniform(0, 1e-3, (3, LAYERS * HEADS)) * pairs
            products = {"gradient_weight": drawn[1] - drawn[2], "abs_gradient_weight": drawn[1] + drawn[2]}
            values = {"abs_gradient": drawn[0], **products, "weight": rng.uniform(0, n_queries, LAYERS * HEADS)}
            rows.append(
                {"example": number, "kind": "encoder", "query_class": query, "key_class": key}
                | {"n_queries": n_queries, "n_keys": n_keys, "n_pairs": pairs}
                | {name: [None if number == len(made) - 1 else one for one in own] for name, own in values.items()}
            )
    return [pa.RecordBatch.from_pylist(rows, schema=EVIDENCE_TABLES["gradient_facts"])]


def _by_head(table: str, draw: Callable[[np.random.Generator, Made], dict[str, float]]) -> Callable[..., Rows]:
    """A row for each example and head; the last example has no numbers."""

    def rows(rng: np.random.Generator, made: Sequence[Made]) -> Rows:
        found = []
        for number, one in enumerate(made):
            for layer, head in np.ndindex(LAYERS, HEADS):
                drawn: dict[str, float | None] = {**draw(rng, one)}
                if number == len(made) - 1:
                    drawn = {name: value if name == "n_tokens" else None for name, value in drawn.items()}
                found.append({"example": number, "kind": "encoder", "layer": layer, "head": head, **drawn})
        return [pa.RecordBatch.from_pylist(found, schema=EVIDENCE_TABLES[table])]

    return rows


def _importance(rng: np.random.Generator, one: Made) -> dict[str, float]:
    by_token = rng.normal(0, 0.01, len(one.source.tokens))
    return {
        "importance": float(by_token.sum()),
        "importance_abs_tokens": float(np.abs(by_token).sum()),
        "n_tokens": len(by_token),
    }


def _attribution(rng: np.random.Generator, one: Made) -> dict[str, float]:
    edges = rng.normal(0, 0.02, (HEADS, len(one.source.tokens)))
    return {"max": float(edges[0].max()), "sum": float(edges[0].sum()), "change": 0.01 * edges.shape[1]}


def _contribution(rng: np.random.Generator, one: Made) -> dict[str, float]:
    true, other = rng.normal(0, 0.5, 2)
    return {"true_class": float(true), "predicted_class": float(max(true, other))}


def _switched_off() -> list[dict[str, Any]]:
    """Plans of all kinds under two interventions: heads, layers, pruning by three orders, one step of both searches."""
    heads = [(layer, head) for layer in range(LAYERS) for head in range(HEADS)]
    orders = {"delta": heads, "importance": heads[::-1], "given": heads[1:]}
    plans: list[tuple[str, str, list[tuple[int, int]], dict[str, Any]]] = []
    for how in ("zero", "uniform"):
        plans += [("heads", how, [one], {}) for one in heads]
        plans += [("layers", how, [one for one in heads if one[0] == layer], {}) for layer in range(LAYERS)]
        plans += [
            ("pruning", how, order[:k], {"ranking": ranking, "series": ranking, "metric": "accuracy", "step": k})
            for ranking, order in orders.items()
            for k in (0, 1, 3)
        ]
        for plan in ("greedy", "beam"):
            step: dict[str, Any] = {"metric": "accuracy", "series": f"{plan} by accuracy", "step": 1}
            plans += [(plan, how, [one], step | {"kept": one == (1, 1)}) for one in heads]
    return [
        {
            "head_set": " ".join([how, *(f"{layer}-{head}" for layer, head in own)]) if own else "none",
            "task": "classification",
            "plan": plan,
            "intervention": how,
            "size": len(own),
            "kind": "encoder" if own else None,
            "layer": own[0][0] if len({layer for layer, _ in own}) == 1 else None,
            "head": own[0][1] if len(own) == 1 else None,
            "kinds": ["encoder"] * len(own),
            "layers": [layer for layer, _ in own],
            "heads": [head for _, head in own],
            "param_groups": [layer for layer, _ in own],
            **more,
        }
        for plan, how, own, more in plans
    ]


def _head_sets(rng: np.random.Generator, made: Sequence[Made]) -> Rows:
    return [pa.RecordBatch.from_pylist(_switched_off(), schema=EVIDENCE_TABLES["head_sets"])]


def _predictions(rng: np.random.Generator, made: Sequence[Made]) -> Rows:
    """Random logits of the classes no and yes for the model as it is and for every set; the last label is missing."""
    rows = []
    for name in dict.fromkeys(["none", *(row["head_set"] for row in _switched_off())]):
        for number, one in enumerate(made):
            logits = rng.normal(size=2)
            gold = None if number == len(made) - 1 else str((one.columns or {})["label"])
            loss = None if gold is None else float(np.log(np.exp(logits).sum()) - logits[("no", "yes").index(gold)])
            rows.append(
                {"head_set": name, "task": "classification", "example": number, "loss": loss}
                | {"n": int(gold is not None), "gold": gold, "predicted": ("no", "yes")[int(logits.argmax())]}
                | {"logits": logits.tolist()}
            )
    return [pa.RecordBatch.from_pylist(rows, schema=EVIDENCE_TABLES["predictions"])]


def _head_scores(rng: np.random.Generator, made: Sequence[Made]) -> Rows:
    """What questions compute from predictions anyway: no question reads the numbers."""
    row = {"task": "classification", "intervention": "none", "head_set": "none", "value": 0.5, "n": 8, "seed": 0}
    metrics = ("accuracy", "f1", "f1 no", "f1 yes", "loss", "matthews")
    rows = [row | {"metric": metric} for metric in metrics]
    return [pa.RecordBatch.from_pylist(rows, schema=EVIDENCE_TABLES["head_scores"])]


EVIDENCE: dict[str, Callable[[np.random.Generator, Sequence[Made]], Rows]] = {
    "value_norms": _value_norms,
    "output_norms": _output_norms,
    "mixing_facts": _mixing_facts,
    "identity_facts": _identity_facts,
    "value_grams": _value_grams,
    "gradient_facts": _gradient_facts,
    "importance_facts": _by_head("importance_facts", _importance),
    "attribution_facts": _by_head("attribution_facts", _attribution),
    "logit_contributions": _by_head("logit_contributions", _contribution),
    "head_sets": _head_sets,
    "predictions": _predictions,
    "head_scores": _head_scores,
    **{table: _weights(table) for table in ("head_weights", "head_overlaps", "compositions")},
}
"""The rows of each table. Every table draws from a generator of its own, so that a new one changes no other."""


def add_evidence(root: Path, made: Sequence[Made]) -> None:
    """Publish an addition with all of these tables in the store at `root`, which holds these examples."""
    folder = f"{names.ADDITIONS}/evidence"
    staging = stage(root, folder)
    rows = {}
    for table, make in EVIDENCE.items():
        writer = TableWriter(staging, table)
        for batch in make(np.random.default_rng([7, *table.encode()]), made):
            writer.append(batch)
        rows[table] = writer.close()
    seal(staging, folder, {"scope": "store", "replaces": sorted(rows)}, rows)
    assert publish(staging, root, folder)
    commit(root, read_store(root).store_id)
