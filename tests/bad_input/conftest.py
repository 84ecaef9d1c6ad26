"""A tiny model, and a finished store into which something bad is about to go."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from transformers import BertConfig, BertModel

from attnstore.job.run import ingest
from tests.bad_input.refusing import GOOD, SIZES, recipe, saved


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a tiny random BERT that takes 24 tokens."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield saved(BertModel(BertConfig(**SIZES)), tmp_path_factory.mktemp("bert"))
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def finished(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished store and, beside it, the corpus it was made of."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "good.conllu").write_text(GOOD)
    ingest(recipe(folder, model, "conllu", "good.conllu", words__source="gold"), folder / "s.attn").close()
    return folder / "s.attn"


@pytest.fixture
def standing(finished: Path, tmp_path: Path) -> Path:
    """A copy of it, into which something bad is about to go."""
    shutil.copy(finished.parent / "good.conllu", tmp_path)
    return Path(shutil.copytree(finished, tmp_path / "s.attn"))
