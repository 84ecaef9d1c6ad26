"""The public names are those that are declared, and each is what its name says."""

import ast
import inspect
from pathlib import Path

import pytest

import attnstore


def test_every_public_name_is_there() -> None:
    for name in attnstore.__all__:
        assert getattr(attnstore, name).__name__ == name


def test_the_names_for_type_checkers_are_those_at_run_time() -> None:
    tree = ast.parse(Path(attnstore.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    typed = {alias.name: node.module for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert typed == attnstore._PLACES
    assert sorted(typed) == sorted(attnstore.__all__)


@pytest.mark.parametrize("name", attnstore.__all__)
def test_every_public_name_and_method_says_what_comes_back(name: str) -> None:
    thing = getattr(attnstore, name)
    assert inspect.getdoc(thing)
    if inspect.isclass(thing):
        for method, value in vars(thing).items():
            if not method.startswith("_") and (inspect.isfunction(value) or isinstance(value, property)):
                assert inspect.getdoc(value), f"{name}.{method}"


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'banana'"):
        _ = attnstore.banana


def test_the_version_is_the_one_of_the_package() -> None:
    from importlib.metadata import version

    assert attnstore.__version__ == version("attnstore")
