"""A store of the largest weights answers as the store of whole maps does, or says that it cannot."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from attnstore.catalogue.catalogue import questions
from attnstore.errors import NotStored
from attnstore.format.manifest import Kept
from attnstore.store.store import Store
from attnstore.store.store import open as open_store
from tests.golden.evidence import add_evidence
from tests.golden.make import REQUIRED, _examples, golden_store
from tests.store.making import make_store

ABOUT_STORED_WEIGHTS = {"audit/rows": "sums the stored weights of a row, to see what is missing from 1"}
"""Questions whose answer is about what is stored, and so another one here."""

NAMES = sorted(name for name, question in questions().items() if not question.compares)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, Store]]:
    """The golden store, and one of the two largest weights of the same rows."""
    place = tmp_path_factory.mktemp("largest")
    skipped = [{"name": "long", "reason": "too long", "origin": "corpus.txt:7"}]
    kept = Kept("topk", None, None, 2)
    root = make_store(place / "k.attn", _examples(), precision="exact", per_segment=4, skipped=skipped, kept=kept)
    add_evidence(root, _examples())
    with open_store(golden_store(place)) as whole, open_store(root) as largest:
        yield whole, largest


def same(one: object, other: object) -> bool:
    """Equal up to the order in which threads of DuckDB add."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    return one == other


def answered_or_refused(store: Store, name: str, params: Mapping[str, Any]) -> list[dict[str, object]] | None:
    """The rows of an answer, or None for one that is refused because weights are lacking, with what to do."""
    try:
        return list(store.ask(name, **params))
    except NotStored as error:
        said, remedy = str(error), error.remedy
    assert "only the 2 largest weights of a row" in said
    assert 'maps = "all"' in remedy
    return None


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_question_has_the_answer_of_whole_maps_or_is_refused_with_what_to_do(
    pair: tuple[Store, Store], name: str
) -> None:
    whole, largest = pair
    params: Mapping[str, Any] = REQUIRED.get(name, {})
    expected = list(whole.ask(name, **params))
    found = answered_or_refused(largest, name, params)
    if found is None:
        return
    if name in ABOUT_STORED_WEIGHTS:
        assert found != expected
        return
    assert len(found) == len(expected)
    for row, wanted in zip(found, expected, strict=True):
        assert all(same(row[column], value) for column, value in wanted.items()), (row, wanted)
