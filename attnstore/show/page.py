"""This file puts tables and pictures on one self-contained HTML page without scripts."""

from collections.abc import Sequence

import pyarrow as pa

from attnstore.show.cell import written
from attnstore.show.markup import Markup, escape, paragraphs
from attnstore.show.terminal import is_number, left_out_text

# The policy stops whatever an escaping error of ours might let through: scripts, fetches, forms.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
STYLE = """
:root { color-scheme: light dark; --ink: #1f2328; --paper: #ffffff; --line: #d1d9e0; --soft: #59636e; --band: #f6f8fa; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6edf3; --paper: #0d1117; --line: #3d444d; --soft: #9198a1; --band: #151b23; }
}
body { margin: 2rem auto; max-width: 72rem; padding: 0 1rem; color: var(--ink); background: var(--paper);
  font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.25; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin-top: 2rem; overflow-wrap: anywhere; }
pre { overflow-x: auto; padding: .75rem; background: var(--band); border-radius: 6px; font-size: .85rem; }
figure { margin: 1rem 0; overflow-x: auto; }
.table { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-size: .9rem; }
th, td { padding: .25rem .75rem; border-bottom: 1px solid var(--line); text-align: start; vertical-align: top; }
th { border-bottom-width: 2px; white-space: nowrap; }
td { unicode-bidi: isolate; overflow-wrap: anywhere; }
tbody tr:nth-child(even) { background: var(--band); }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.note { color: var(--soft); font-size: .9rem; }
"""


def page(title: str, parts: Sequence[str]) -> str:
    """One HTML page that needs no network: parts that are Markup stand as they are, every other is escaped as text.

    Pictures that begin with <svg are put into a figure which scrolls by itself.
    """
    body = "\n".join(_part(part) for part in parts)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<title>{escape(title)}</title>
<style>{STYLE}</style>
</head>
<body>
<h1>{escape(title)}</h1>
{body}
</body>
</html>
"""


def table_html(table: pa.Table, max_rows: int = 200) -> Markup:
    """The first rows of a table, numbers at the right, and a note of how many were left out."""
    if table.num_columns == 0:
        return paragraphs("(no columns)")
    kinds = [' class="number"' if is_number(column.type) else "" for column in table.columns]
    names = [escape(name) for name in table.column_names]
    head = "".join(f'<th{kind} scope="col">{name}</th>' for kind, name in zip(kinds, names, strict=True))
    columns = [column.slice(0, max_rows).to_pylist() for column in table.columns]
    rows = [
        "<tr>"
        + "".join(f"<td{kind}>{escape(written(value))}</td>" for kind, value in zip(kinds, row, strict=True))
        + "</tr>"
        for row in zip(*columns, strict=True)
    ]
    note = left_out_text(table, max_rows) or ("(no rows)" if table.num_rows == 0 else "")
    below = f'\n<p class="note">{escape(note)}</p>' if note else ""
    body = "\n".join(rows)
    return Markup(
        f'<div class="table"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table></div>{below}'
    )


def _part(part: str) -> str:
    if not isinstance(part, Markup):
        return paragraphs(part)
    return f"<figure>{part}</figure>" if part.startswith("<svg") else part
