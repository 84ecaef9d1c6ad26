"""This file is `attnstore verify`."""

from dataclasses import asdict
from pathlib import Path

import click

from attnstore.cli.options import folder_argument, give, output, reading

EXAMPLES = """\b
Examples:
  attnstore verify quickstart.attn --deep
  attnstore verify quickstart.attn --snapshot 1"""


@click.command(epilog=EXAMPLES)
@folder_argument
@click.option("--deep", is_flag=True, help="Decode every map as well and check that its rows sum to 1.")
@reading
@output
def command(
    store: Path,
    deep: bool,
    snapshot: int | None,
    tag: str | None,
    expect: str | None,
    form: str,
    output: Path | None,
) -> None:
    """Check a store against the format, and list what is broken. Exit status 1 where something is."""
    import pyarrow as pa

    from attnstore.format.verify import Finding, verify

    findings = verify(store, deep=deep, snapshot=snapshot, tag=tag, expect=expect)
    columns = list(Finding.__dataclass_fields__)
    rows = [asdict(finding) for finding in findings]
    if findings or form != "table" or output is not None:
        schema = pa.schema([(name, pa.string()) for name in columns])
        give(pa.Table.from_pylist(rows, schema=schema), form, output)
    click.echo(f"{store}: {len(findings) or 'no'} rule{'' if len(findings) == 1 else 's'} broken", err=True)
    raise SystemExit(1 if findings else 0)
