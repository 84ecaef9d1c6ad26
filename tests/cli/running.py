"""This file runs the command for the tests of it: in this process through click's runner, or as a process."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from attnstore.cli import group

RECIPE = (
    'title = "tiny"\n[corpus]\nkind = "arrays"\npath = "{path}"\n[model]\nname = "arrays"\n[words]\nsource = "gold"\n'
)


def invoke(*args: object, stdin: str | bytes | None = None) -> Result:
    """The command in this process; what it raises stays in `exception`."""
    return CliRunner().invoke(group, [str(arg) for arg in args], input=stdin)


def good(*args: object, stdin: str | bytes | None = None) -> Result:
    """The same for a command that must succeed."""
    result = invoke(*args, stdin=stdin)
    if result.exception is not None:
        raise AssertionError(f"{args}: {result.stderr}") from result.exception
    return result


def process(
    *args: object, stdin: bytes | None = None, cwd: Path | None = None, **environment: str
) -> "subprocess.CompletedProcess[bytes]":
    """`python -m attnstore` with these words, run to its end."""
    command = [sys.executable, "-W", "error", "-m", "attnstore", *map(str, args)]
    return subprocess.run(
        command, input=stdin, capture_output=True, cwd=cwd, env={**os.environ, **environment}, check=False, timeout=120
    )


@contextmanager
def interrupts() -> Iterator[None]:
    """SIGINT interrupts, here and in processes that are started meanwhile.

    A shell has what it runs in the background ignore the signal, and what is ignored is inherited.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def started(*args: object) -> "subprocess.Popen[bytes]":
    """The same, while it runs."""
    command = [sys.executable, "-m", "attnstore", *map(str, args)]
    with interrupts():
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def write_recipe(folder: Path, path: str = "corpus.jsonl") -> Path:
    """A recipe for a corpus of the kind `arrays` that lies beside it."""
    recipe = folder / "tiny.toml"
    recipe.write_text(RECIPE.format(path=path), encoding="utf-8")
    return recipe


def rows(*args: object) -> list[dict[str, Any]]:
    """What a command gives as JSON, with nothing said beside it."""
    result = good(*args, "--format", "json")
    assert result.stderr == ""
    found: list[dict[str, Any]] = json.loads(result.stdout)
    return found
