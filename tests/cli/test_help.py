"""The help of every command ends with an example, and the examples are commands that are taken."""

import inspect
import shlex
import shutil
from pathlib import Path

import click
import pytest

from attnstore.cli import COMMANDS, group
from tests.cli.running import good


def command_of(name: str) -> click.Command:
    command = group.get_command(click.Context(group), name)
    assert command is not None
    return command


def examples(name: str) -> list[str]:
    """The commands at the end of the help page."""
    page = good(name, "--help").stdout
    after = page.partition("\n  Examples:\n")[2]
    assert after, f"{name} has no examples"
    return [line.strip() for line in after.splitlines()]


EXAMPLES = [(name, line) for name in COMMANDS for line in examples(name)]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_says_what_the_command_does_and_ends_with_an_example(name: str) -> None:
    page = good(name, "--help").stdout
    assert page.startswith(f"Usage: attnstore {name} ")
    assert (command_of(name).help or "").startswith(COMMANDS[name][:15])  # the list and the page say the same
    assert page.splitlines()[-1].strip().startswith(f"attnstore {name}")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_explained(name: str) -> None:
    for param in command_of(name).params:
        if isinstance(param, click.Option):
            assert param.help, f"{name} {param.opts}"


@pytest.mark.parametrize(("name", "line"), EXAMPLES, ids=[line for _, line in EXAMPLES])
def test_an_example_is_taken(name: str, line: str) -> None:
    program, first, *words = shlex.split(line)
    assert (program, first) == ("attnstore", name)
    command_of(name).make_context(name, words)


READ_ONLY = [line for name, line in EXAMPLES if name in ("info", "questions", "ask", "sql", "show", "verify")]


def test_the_examples_that_read_run_on_a_store(
    tiny_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(tiny_store, "quickstart.attn")
    Path("mine.sql").write_text("-- Layers.\nselect distinct layer from heads\n")
    for line in READ_ONLY:
        result = good(*shlex.split(line)[1:])
        assert result.stdout or Path("map.html").exists() or line.startswith("attnstore verify"), line


def test_every_command_has_a_file_and_every_file_a_command() -> None:
    files = {path.stem for path in Path(inspect.getfile(command_of("ask").callback or group)).parent.glob("*.py")}
    assert files - {"__init__", "options"} == set(COMMANDS)
