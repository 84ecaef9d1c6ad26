"""This file tests that imports inside attnstore only go down, and that reading a store needs no model library."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "attnstore"

# Who may import whom; a part may always import itself. The lowest parts come first.
TABLE: dict[str, set[str]] = {
    "errors": set(),
    "paths": {"errors"},
    "format": {"errors", "paths"},
    "text": {"errors", "paths"},
    "catalogue": {"errors", "paths"},
    "reduce": {"errors", "format", "text"},
    "capture": {"errors", "text"},
    "store": {"errors", "paths", "format", "text", "reduce", "catalogue"},
    "share": {"errors", "paths", "format", "text", "reduce", "catalogue", "store"},
    "show": {"errors", "store"},
    "job": {"errors", "paths", "format", "text", "reduce", "capture", "store", "share"},
    "serve": {"errors", "paths", "format", "catalogue", "store", "share", "show"},
}
TABLE["cli"] = TABLE["__init__"] = TABLE["__main__"] = set(TABLE) | {"cli"}

MODEL_LIBRARIES = {"torch", "transformers"}
# The files and folders outside of capture that may import it at their top. All others import these inside a function
# only, so that torch loads when a model is about to run and not before.
MODEL_SIDE = ("job/model_source.py", "job/probe.py", "job/evidence/")
CORE_LIBRARIES = {"zarr", "duckdb", "pyarrow", "numpy", "click"}


class Import(NamedTuple):
    """One import of `module` in line `line`: `late` inside a function, `typing` for type checkers only."""

    module: str
    line: int
    late: bool
    typing: bool


def is_type_checking(test: ast.expr) -> bool:
    return ast.unparse(test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def imports(node: ast.AST, package: str, late: bool = False, typing: bool = False) -> Iterator[Import]:
    """Every import under `node`, relative ones made absolute, `importlib.import_module("x")` included."""
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.Import(names=names):
                for alias in names:
                    yield Import(alias.name, child.lineno, late, typing)
            case ast.ImportFrom(module=module, names=names, level=level):
                if level:
                    above = package.split(".")[: len(package.split(".")) - level + 1]
                    module = ".".join([*above, *([module] if module else [])])
                for alias in names:
                    # `from attnstore import store` names a part by its alias, so the alias counts as well.
                    yield Import(f"{module}.{alias.name}", child.lineno, late, typing)
            case ast.Call(args=[ast.Constant(value=str(name)), *_]) if ast.unparse(child.func).endswith(
                "import_module"
            ):
                yield Import(name, child.lineno, late, typing)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                yield from imports(child, package, True, typing)
                continue
            case ast.If(test=test, body=body, orelse=orelse) if is_type_checking(test):
                yield from imports(ast.Module(body=body, type_ignores=[]), package, late, True)
                yield from imports(ast.Module(body=orelse, type_ignores=[]), package, late, typing)
                continue
        yield from imports(child, package, late, typing)


def sources(root: Path) -> list[Path]:
    return [path for path in sorted(root.rglob("*.py")) if "_shipped" not in path.parts]


def loads_models(module: str, package: str) -> bool:
    """Whether importing `module` loads torch."""
    names = ["capture", *(file.removesuffix(".py").strip("/").replace("/", ".") for file in MODEL_SIDE)]
    return any(f"{module}.".startswith(f"{package}.{name}.") for name in names)


def violations(root: Path) -> list[str]:
    """One line for each import under the package folder `root` that the table forbids."""
    found = []
    for path in sources(root):
        inside = path.relative_to(root)
        part = inside.parts[0].removesuffix(".py")
        where = inside.as_posix()
        if part not in TABLE:
            found.append(f"{where}: the part {part!r} is not in the table")
            continue
        package = ".".join([root.name, *inside.parts[:-1]])
        for module, line, late, typing in imports(ast.parse(path.read_text(encoding="utf-8")), package):
            names = module.split(".")
            if names[0] in MODEL_LIBRARIES and part != "capture":
                found.append(f"{where}:{line}: {names[0]} may be imported under capture only")
            if names[0] != root.name or part == "__init__":
                continue
            target = names[1] if len(names) > 1 else ""
            if not target and part == "cli":  # `attnstore.__version__` has no other home
                continue
            if target not in TABLE or target == "__init__":
                found.append(f"{where}:{line}: imports {module} from the top, not from the module that defines it")
            elif target != part and target not in TABLE[part]:
                found.append(f"{where}:{line}: {part} may not import {target}")
            elif (
                loads_models(module, root.name)
                and not (part == "capture" or where.startswith(MODEL_SIDE) or typing)
                # `cli` sees everything, but what runs a model goes through `job`.
                and not (late and "job" in (part, target))
            ):
                found.append(f"{where}:{line}: {module} may be imported only inside a function of job")
    return found


def test_every_import_of_the_package_goes_down() -> None:
    assert violations(PACKAGE) == []


def test_the_whole_package_is_read() -> None:
    parts = {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in sources(PACKAGE)}
    assert all((PACKAGE / file).exists() for file in MODEL_SIDE)
    assert parts >= {"__init__", "errors", "paths", "format", "text", "catalogue", "reduce", "capture", "store", "cli"}


@pytest.mark.parametrize(
    ("file", "source", "message"),
    [
        ("text/lines.py", "import attnstore.store.store\n", "text/lines.py:1: text may not import store"),
        ("text/lines.py", "from ..store.store import Store\n", "text/lines.py:1: text may not import store"),
        ("format/names.py", "from attnstore.text.example import Word\n", "format may not import text"),
        (
            "reduce/words.py",
            "def f():\n    from attnstore.capture.model import load\n",
            "reduce may not import capture",
        ),
        ("store/store.py", "import attnstore.job.run\n", "store may not import job"),
        ("show/page.py", "from attnstore.serve.app import app\n", "show may not import serve"),
        ("serve/app.py", "from attnstore.job.run import ingest\n", "serve may not import job"),
        ("store/store.py", "from attnstore import errors, Store\n", "imports attnstore.Store from the top"),
        ("store/store.py", "import attnstore\n", "imports attnstore from the top"),
        ("show/page.py", "import torch.nn as nn\n", "torch may be imported under capture only"),
        (
            "job/run.py",
            "def f():\n    from transformers import AutoModel\n",
            "transformers may be imported under capture",
        ),
        (
            "cli/doctor.py",
            "import importlib\nimportlib.import_module('torch')\n",
            "cli/doctor.py:2: torch may be imported",
        ),
        ("job/run.py", "from attnstore.capture.model import load\n", "may be imported only inside a function of job"),
        (
            "cli/doctor.py",
            "def f():\n    import attnstore.capture.model\n",
            "may be imported only inside a function of job",
        ),
        ("job/run.py", "from attnstore.job.model_source import X\n", "may be imported only inside a function of job"),
        ("job/run.py", "from attnstore.job import model_source\n", "may be imported only inside a function of job"),
        ("cli/doctor.py", "from attnstore.job.probe import probe\n", "may be imported only inside a function of job"),
        ("cli/__init__.py", "from attnstore import __version__\n", "imports attnstore.__version__ from the top"),
        ("misc/thing.py", "", "the part 'misc' is not in the table"),
    ],
)
def test_a_planted_import_is_caught(tmp_path: Path, file: str, source: str, message: str) -> None:
    planted = tmp_path / "attnstore" / file
    planted.parent.mkdir(parents=True)
    planted.write_text(source)
    (found,) = violations(tmp_path / "attnstore")
    assert message in found


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("store/store.py", "from attnstore.format.names import X\nfrom .maps import AttentionMap\nimport zarr\n"),
        (
            "capture/model.py",
            "import torch\nfrom transformers import X\nfrom attnstore.errors import NotCaptured\n",
        ),
        ("job/run.py", "def ingest():\n    from attnstore.capture.model import load\n"),
        ("job/model_source.py", "from attnstore.capture.model import load\n"),
        ("cli/doctor.py", "import attnstore\n\ndef f():\n    from attnstore.job.probe import probe\n"),
        ("job/sources.py", "def f():\n    from attnstore.job.model_source import ModelSource\n"),
        ("job/run.py", "if TYPE_CHECKING:\n    from attnstore.capture.model import Model\n"),
        (
            "cli/ask.py",
            "import click\nfrom attnstore.store.store import Store\nfrom attnstore.cli.options import X\n",
        ),
    ],
)
def test_an_allowed_import_passes(tmp_path: Path, file: str, source: str) -> None:
    allowed = tmp_path / "attnstore" / file
    allowed.parent.mkdir(parents=True)
    allowed.write_text(source)
    assert violations(tmp_path / "attnstore") == []


def loaded_after(code: str, names: set[str]) -> set[str]:
    """Those of `names` that a fresh interpreter has loaded after running `code`."""
    script = f"import sys\n{code}\nprint(*sorted({names!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_importing_attnstore_loads_none_of_the_libraries_it_depends_on() -> None:
    assert loaded_after("import attnstore", CORE_LIBRARIES | MODEL_LIBRARIES | {"spacy"}) == set()


def test_a_loaded_library_would_be_seen() -> None:
    assert loaded_after("import attnstore, click", CORE_LIBRARIES | MODEL_LIBRARIES) == {"click"}


def test_every_module_but_those_that_run_models_loads_where_torch_and_transformers_are_absent() -> None:
    names = [
        ".".join(["attnstore", *path.relative_to(PACKAGE).with_suffix("").parts]).removesuffix(".__init__")
        for path in sources(PACKAGE)
        if path.relative_to(PACKAGE).parts[0] not in ("capture", "__main__.py")
        and not path.relative_to(PACKAGE).as_posix().startswith(MODEL_SIDE)
    ]
    assert len(names) > 10
    # A None in sys.modules makes Python treat the library as missing.
    code = "\n".join(
        [
            "import importlib",
            "sys.modules.update(torch=None, transformers=None)",
            f"for name in {names!r}: importlib.import_module(name)",
        ]
    )
    assert loaded_after(code, {"attnstore.errors", "attnstore.capture.model"}) == {"attnstore.errors"}
