"""Tests of how JSON is parsed and its values are checked."""

import pytest

from attnstore.errors import Damaged
from attnstore.format.json_text import count, parsed


def test_what_a_store_writes_is_parsed() -> None:
    text = '{"a": [1, -2, 0.5, 1e-3, "é\\u00e9\\ud83d\\ude00", null, true], "b": {}}'
    assert parsed(text.encode(), "x") == {"a": [1, -2, 0.5, 1e-3, "éé😀", None, True], "b": {}}


@pytest.mark.parametrize(
    "text",
    [
        *(b"", b"{", b"{} {}", b"NaN", b"[Infinity]", b"-Infinity", b"1e999", b"[-1e999]", b"1" * 5000, b"9" * 30),
        *(b'{"a": 1, "a": 2}', b'[{"x": {"b": 1, "b": 1}}]', b'"\\ud800"', b'{"\\udfff": 1}', b'"\xff"'),
        *("{}".encode("utf-16"), "{}".encode("utf-8-sig"), b"[" * 200_000, b'{"a":' * 200_000),
    ],
)
def test_what_two_readers_could_take_for_two_things_is_damage(text: bytes) -> None:
    with pytest.raises(Damaged, match="no valid JSON") as caught:
        parsed(text, "reading x")
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("value", [True, False, 1.0, "1", None, -1, 11, [1]])
def test_a_count_is_a_whole_number_within_its_bounds(value: object) -> None:
    assert [count(number, 10) for number in (0, 10)] == [0, 10]
    with pytest.raises(ValueError, match="not a number from 0 to 10"):
        count(value, 10)
