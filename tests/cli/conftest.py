"""What the tests of the command line share."""

from pathlib import Path

import pytest

from tests.cli.running import write_recipe
from tests.conftest import SENTENCES, write_arrays


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small corpus of ready-made maps, with its recipe."""
    folder = tmp_path_factory.mktemp("corpus")
    write_arrays(folder, SENTENCES[:4])
    write_recipe(folder)
    return folder
