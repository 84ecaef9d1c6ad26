"""This file is the command `attnstore`: its commands in the order of the help page, and how errors end."""

import contextlib
import io
import os
import signal
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import click

import attnstore
from attnstore.errors import AttnStoreError

COMMANDS = {
    "demo": "Run a small model over a small corpus and look at the answers.",
    "estimate": "Say what an ingest would store and need, without running the model.",
    "ingest": "Run a recipe: a corpus goes in, a store comes out.",
    "plan": "Cut an ingest into segments that any scheduler can run.",
    "run": "Build a part of a planned store.",
    "finish": "Make a planned store readable once all its segments are there.",
    "annotate": "Add or replace words, labels, mentions or links of a store, without the model.",
    "refresh": "Compute facts anew from the stored maps and keep them, without the model.",
    "info": "Say what a store holds.",
    "questions": "List the questions that can be asked, or describe one.",
    "ask": "Ask a store a question by name, or one of your own in a .sql file.",
    "compare": "Ask a question of two stores: what did another model, or training, change?",
    "sql": "Run one SQL statement over a store.",
    "show": "Look at one attention map, or at an answer as layers x heads.",
    "cite": "Say what identifies a store or an answer, or check a citation.",
    "export": "Write maps, a large answer, or a smaller store, for others.",
    "card": "Say what a store is, whose, and how to open it: a README for the Hub, or Croissant.",
    "pack": "Put a store into one zip file, which opens as it is.",
    "unpack": "Take a store out of a zip file into a folder, every file checked.",
    "merge": "Make one store of several stores of one model.",
    "compact": "Make a store of the same examples in fewer, larger segments.",
    "verify": "Check a store against the format, and list what is broken.",
    "push": "Send a store into a bucket or to the Hugging Face Hub.",
    "pull": "Copy a store from a bucket, the Hub or a service into a folder.",
    "tag": "Name a snapshot, so that it can be cited and is never collected; list or delete such names.",
    "gc": "Remove what nobody can need: leftovers of killed writers, old snapshots, additions that were dropped.",
    "serve": "Publish stores read-only over HTTP: a page for people, an API for programs.",
    "doctor": "Say what is installed, and whether attention can be captured here.",
}
"""Every command in help order. A command's module is loaded when it runs, so that none waits for another's imports."""

WRITING = (
    "demo",
    "ingest",
    "plan",
    "run",
    "finish",
    "annotate",
    "refresh",
    "tag",
    "gc",
    "push",
    "pull",
    "merge",
    "compact",
    "pack",
    "unpack",
)
"""Commands that tidy up when they are interrupted; the others end at once."""


def _remember(context: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        context.ensure_object(dict)["verbose"] = True


_VERBOSE = click.Option(
    ["-v", "--verbose"],
    is_flag=True,
    expose_value=False,
    callback=_remember,
    help="Show the traceback of an error.",
)


class _ReaderGone(BaseException):
    """The reader of standard output went away, as `head` does. No OSError: click would end that with status 1."""


@contextlib.contextmanager
def _reader_watched() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError as error:
        raise _ReaderGone from error


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f"attnstore.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        if _VERBOSE not in command.params:
            command.params.append(_VERBOSE)  # before or after the command: nobody should have to remember which
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        with _reader_watched():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        with _reader_watched():
            return super().invoke(ctx)


@click.group("attnstore", cls=_Commands, params=[_VERBOSE], epilog="\b\nStart with:\n  attnstore demo")
@click.version_option(attnstore.__version__)
@click.pass_context
def group(context: click.Context) -> None:
    """Run a transformer over a corpus once; keep its attention maps; ask them anything afterwards.

    Data goes to standard output, talk and progress to standard error. Exit status: 0 done, 1 a problem
    was found, 2 the command was used wrongly.
    """
    is_process = isinstance(context.obj, dict) and context.obj.get("is_process")
    # Another handler means that an interruption is to be ignored, as for a job in the background.
    may_be_stopped = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_process and context.invoked_subcommand in WRITING:
        # As schedulers end a job: what was staged is removed.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    if is_process and may_be_stopped and context.invoked_subcommand not in WRITING:
        # Python would wait until DuckDB or torch comes back, which may take hours. There is nothing to tidy up.
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def main() -> None:
    """The command as it is installed: what goes wrong ends in one line on standard error and exit status 1.

    Status 2 is wrong usage, 130 an interruption. A reader of the output that goes away is no error.
    """
    told, handlers = (
        {"is_process": True},
        {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)},
    )
    try:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")  # a terminal may not know every letter of a corpus
        status = group.main(standalone_mode=False, obj=told)
        if sys.stdout is not None:  # None where it was closed
            sys.stdout.flush()
    except (_ReaderGone, BrokenPipeError):
        _drop_output()
        sys.exit(0)
    except (AttnStoreError, OSError) as error:
        if told.get("verbose"):
            raise
        click.echo(f"Error: {_line(error)}", err=True)
        _drop_output()
        sys.exit(1)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        click.echo("Stopped. An ingest goes on where it stopped with the same command.", err=True)
        sys.exit(130)
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    sys.exit(status if isinstance(status, int) else 0)


def _line(error: BaseException) -> str:
    """What went wrong, on one line; what it quotes of a store cannot steer the terminal."""
    from attnstore.show.cell import visible

    return visible(" ".join(str(error).splitlines()))


def _drop_output() -> None:
    # What is left in the buffer would fail once more when Python ends.
    if sys.stdout is not None:
        with contextlib.suppress(OSError, io.UnsupportedOperation):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
