"""This file runs SQL and questions against a store and hands the answer over with its provenance."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from attnstore.catalogue.catalogue import bind, find, questions
from attnstore.errors import BadInput, NotFound
from attnstore.store.cited import made_of, shown_model
from attnstore.store.needs import check_needs
from attnstore.store.result import Provenance, Result

if TYPE_CHECKING:
    from attnstore.catalogue.question import Question
    from attnstore.store.store import Store


def run(
    store: "Store",
    text: str,
    params: Mapping[str, object],
    max_rows: int | None = None,
    max_bytes: int | None = None,
) -> Result:
    """The answer to one SELECT, or its first `max_rows` rows; of those no more than pass `max_bytes`."""
    params = plain(params)
    table = store.engine.database.run(text, params, max_rows=max_rows, max_bytes=max_bytes)
    return Result(table, provenance(store, text, params, None))


def plain(params: Mapping[str, object]) -> dict[str, object]:
    """The parameters without numbers of NumPy, which DuckDB does not take and JSON does not know."""
    return {
        name: value.tolist() if isinstance(value, np.generic | np.ndarray) else value for name, value in params.items()
    }


def ask(
    store: "Store", name: str, params: Mapping[str, object], where: str | None = None, max_rows: int | None = None
) -> Result:
    """The answer to a question by name or path, over the examples for which the SQL of `where` holds.

    A parameter `kind` that is null becomes the store's first kind; `kind`, `layer`, `head` and `example` must be among
    those that the store has.
    """
    question = find(name)
    if question.compares:
        raise BadInput(
            f"asking {question.name}",
            "it compares two stores, and this is one",
            "a second store",
            "attnstore compare QUESTION A B, or attnstore.compare(a, b).ask(question)",
        )
    values = bind(question, params)
    if "kind" in values:
        values["kind"] = store.checked_kind(None if values["kind"] is None else str(values["kind"]))
    kinds = [str(values["kind"])] if "kind" in values else list(store.kinds)
    for word, most in (
        ("layer", max(store.info.kinds[kind].layers for kind in kinds)),
        ("head", max(store.info.kinds[kind].heads for kind in kinds)),
    ):
        number = values.get(word)
        if isinstance(number, int) and not 0 <= number < most:
            raise NotFound(f"asking {question.name}", f"{word}={number}", f"a {word} of this store, 0-{most - 1}")
    example = values.get("example")
    if isinstance(example, int) and example not in store.engine.places.examples:
        raise NotFound(f"asking {question.name}", f"example={example}", "the number of an example of this store")
    check_needs(question, values, store.engine.database)
    database = store.engine.computed.database(question, values, where)
    used = {param: value for param, value in values.items() if param in question.sql_params}
    doing, is_shipped = f"asking {question.name}", question.name in questions()
    table = database.run(question.sql, used, doing=doing, max_rows=max_rows, is_shipped=is_shipped)
    return Result(table, provenance(store, question.sql, values, question, where), question)


def provenance(
    store: "Store", text: str, params: Mapping[str, object], question: "Question | None", where: str | None = None
) -> Provenance:
    """Where an answer comes from."""
    info, snapshot = store.info, store.snapshot
    return Provenance(
        store_id=info.store_id,
        title=info.title,
        snapshot=snapshot.number,
        content_hash=snapshot.content_hash,
        model=shown_model(str(info.model.get("name", ""))),
        revision=str(info.model.get("revision") or ""),
        question=None if question is None else question.name,
        source=None if question is None else question.source or None,
        sql=text,
        params=dict(params),
        where=where,
        made=made_of(store),
        text=own_text(question),
        threads=store.threads,
    )


def own_text(question: "Question | None") -> str | None:
    """The whole file of a question that does not ship; None for one that does."""
    if question is None or question.name in questions():
        return None
    return question.path.read_text(encoding="utf-8-sig")
