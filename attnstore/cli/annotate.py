"""This file is `attnstore annotate`."""

from pathlib import Path

import click

from attnstore.cli.options import folder_argument

EXAMPLES = """\b
Examples:
  attnstore annotate gum.attn --words corrected.conllu
  attnstore annotate gum.attn --labels genres.csv
  attnstore annotate gum.attn --mentions entities.conllu
  attnstore annotate gum.attn --links frames.jsonl
  attnstore annotate gum.attn --patterns labelled.csv"""

_FILE = click.Path(path_type=Path)


@click.command(epilog=EXAMPLES)
@folder_argument
@click.option("--words", type=_FILE, help="CoNLL-U or JSON Lines with words, by name or text.")
@click.option("--labels", type=_FILE, help="Table or JSON Lines with labels, by name or text.")
@click.option("--mentions", type=_FILE, help="CoNLL-U or JSON Lines with mentions; they count the words.")
@click.option("--links", type=_FILE, help="JSON Lines with links or frames; they count the words.")
@click.option("--patterns", type=_FILE, help="Table of maps and their patterns: example, layer, head, pattern.")
def command(
    store: Path,
    words: Path | None,
    labels: Path | None,
    mentions: Path | None,
    links: Path | None,
    patterns: Path | None,
) -> None:
    """Add or replace words, labels, mentions, links or patterns of a store, without the model.

    The store keeps what it had; the new tables are an addition, and the newest snapshot reads them.
    """
    from attnstore.job.annotate import annotate_labels, annotate_words
    from attnstore.job.annotate_patterns import ENDINGS as TABLES
    from attnstore.job.annotate_patterns import annotate_patterns
    from attnstore.job.annotate_spans import annotate_links, annotate_mentions
    from attnstore.job.annotation_match import KINDS, check_file
    from attnstore.job.span_file import ENDINGS

    # Words first: mentions and links count them.
    known = (
        (words, annotate_words, tuple(KINDS)),
        (labels, annotate_labels, tuple(KINDS)),
        (mentions, annotate_mentions, ENDINGS["mentions"]),
        (links, annotate_links, ENDINGS["links"]),
        (patterns, annotate_patterns, TABLES),
    )
    wanted = [(path, add, endings) for path, add, endings in known if path is not None]
    if not wanted:
        raise click.UsageError("Name what to add: --words, --labels, --mentions, --links or --patterns FILE.")
    for path, _, endings in wanted:
        check_file(path, f"annotating {store}", endings)  # all, before any is added
    for path, add, _ in wanted:
        done = add(store, path)
        click.echo(f"{store}: examples annotated: {done.examples}, in the addition {done.addition}", err=True)
        if done.unmatched:
            shown = ", ".join(done.unmatched[:5]) + (", …" if len(done.unmatched) > 5 else "")
            click.echo(f"entries that match no example: {len(done.unmatched)} ({shown})", err=True)
