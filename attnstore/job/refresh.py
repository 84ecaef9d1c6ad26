"""This file computes facts of a finished store anew from its maps, with other parameters, and keeps them."""

from collections.abc import Mapping
from pathlib import Path

from attnstore.errors import NotStored
from attnstore.format.parquet import TableWriter
from attnstore.job.addition import opened, publish_addition
from attnstore.store.fact_parameters import fact_parameters
from attnstore.store.facts import FACTS
from attnstore.store.fill import batches


def refresh(store: str | Path, table: str, params: Mapping[str, object] | None = None) -> str:
    """Compute a fact table from the stored maps and publish it as an addition; its id.

    Questions then read it where its parameters fit. Parameters that are not given are those of the stored table,
    else the defaults. No model is needed. NotFound for an unknown table, BadInput for a parameter that it does not
    take or a store whose ingest has not ended, NotStored where the maps that were kept do not suffice: facts of all
    heads are not replaced by those of the heads whose maps were kept.
    """
    doing = f"refreshing {table} of {store}"
    with opened(Path(store), doing) as found:
        stored = found.engine.files.parameters(table) if table in FACTS else None
        values = fact_parameters(table, params or {}, stored or {}, doing)
        if stored is not None and (found.info.kept.layers, found.info.kept.heads) != (None, None):
            raise NotStored(doing, "the maps of some heads only", "all of them, as in the facts that are there")

        def fill(writers: dict[str, TableWriter]) -> None:
            for rows in batches(found.engine, table, values, doing):
                for batch in rows.to_batches():
                    writers[table].append(batch)

        what, source = table.replace("_", "-"), {table: "computed from the stored maps"}
        return publish_addition(found, what, [table], source, doing, fill, values)
