"""Stores of the read side's tests. The maker is loaded by its path, since tests are no package."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


def load_maker() -> ModuleType:
    name = "attnstore_tests_making"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).parent / "making.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


@pytest.fixture(scope="session")
def making() -> ModuleType:
    """The module that makes stores."""
    return load_maker()


@pytest.fixture(scope="session")
def made(making: Any) -> Any:
    """Seven examples of one encoder with 2 layers of 3 heads."""
    return making.random_examples(1, (5, 9, 3, 12, 7, 6, 8), {"encoder": making.ENCODER})


@pytest.fixture(scope="session")
def folder(making: Any, made: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of them in three segments. Read it only."""
    return Path(making.make_store(tmp_path_factory.mktemp("read") / "made.attn", made))
