"""What docs/service.md says is true: its tables, its addresses, and its examples against a real server."""

import re
import subprocess
import sys
from dataclasses import fields

import pytest

from attnstore.serve.limits import Limits
from attnstore.serve.problems import KINDS
from tests.pages import ROOT, blocks, text_of
from tests.serve.running import Running

PAGE = ROOT / "docs/service.md"
ADDRESS = "http://127.0.0.1:8000"


def rows(start: str) -> list[list[str]]:
    """The cells of the table whose first line begins so."""
    part = text_of(PAGE).partition(start)[2].partition("\n\n")[0]
    return [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in part.splitlines()[2:] if "|" in line]


def test_the_page_lists_every_limit_with_its_default() -> None:
    found = [(name.strip("`"), default) for name, default, _ in rows("| limit | default")]
    assert found == [(field.name, str(field.default)) for field in fields(Limits)]


def test_the_page_lists_every_problem_with_its_status() -> None:
    found = [(name.strip("`"), int(status), title) for name, status, title in rows("| problem | status")]
    assert found == [(name, status, title) for name, (status, title) in KINDS.items()]


@pytest.mark.parametrize("code", [pytest.param(code, id=f"{n}") for n, code in enumerate(blocks(PAGE, "python"))])
def test_an_example_in_python_runs(server: Running, code: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", code.replace(ADDRESS, server.url)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_the_examples_with_curl_run(server: Running) -> None:
    (script,) = blocks(PAGE, "bash")
    done = subprocess.run(
        ["bash", "-ec", script.replace(ADDRESS, server.url)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert '"rows":[["the",6]]' in done.stdout
    assert not re.search(r'"type": "/problems/', done.stdout), done.stdout
