"""This file is the command `attnstore`: its commands in the order of the help page, and how errors end."""

import os
import sys
from importlib import import_module

import click

import attnstore
from attnstore.errors import AttnStoreError

COMMANDS = {
    "demo": "Run a small model over a small corpus and look at the answers.",
    "estimate": "Say what an ingest would store and need, without running the model.",
    "ingest": "Run a recipe: a corpus goes in, a store comes out.",
    "annotate": "Add or replace words or labels of a store, without the model.",
    "info": "Say what a store holds.",
    "questions": "List the questions that can be asked, or describe one.",
    "ask": "Ask a store a question by name, or one of your own in a .sql file.",
    "sql": "Run one SQL statement over a store.",
    "show": "Look at one attention map.",
    "verify": "Check a store against the format, and list what is broken.",
    "doctor": "Say what is installed, and whether attention can be captured here.",
}
"""Every command in help order. A command's module is loaded when it runs, so that none waits for another's imports."""


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f"attnstore.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=_Commands)
@click.version_option(attnstore.__version__)
@click.option("-v", "--verbose", is_flag=True, help="Show the traceback of an error.")
@click.pass_context
def group(context: click.Context, verbose: bool) -> None:
    """Run a transformer over a corpus once; keep its attention maps; ask them anything afterwards.

    Data goes to standard output, talk and progress to standard error. Exit status: 0 done, 1 a problem
    was found, 2 the command was used wrongly.
    """
    context.obj = verbose


def main() -> None:
    """The command as it is installed: errors of attnstore end in one line and exit status 1."""
    verbose = any(word in ("-v", "--verbose") for word in sys.argv[1:2])
    try:
        status = group.main(standalone_mode=False)
        sys.stdout.flush()
        sys.exit(status if isinstance(status, int) else 0)
    except AttnStoreError as error:
        if verbose:
            raise
        click.echo(f"Error: {error}", err=True)
        sys.exit(1)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        click.echo("Stopped. The same command goes on where it stopped.", err=True)
        sys.exit(130)
    except BrokenPipeError:
        # The reader went away, as `head` does: not an error of ours.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
