"""A compacted store has the same examples in fewer segments, and answers everything as its source does."""

from pathlib import Path

import pytest

import attnstore
from attnstore.cli import group
from attnstore.errors import BadInput
from attnstore.format.verify import verify
from attnstore.job.annotate import annotate_labels
from attnstore.job.refresh import refresh
from attnstore.share.compact import compact
from tests.share.made import MORE, answers, maker, maps_of, same, tree


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four segments or more."""
    return maker(tmp_path_factory.mktemp("compact"))("source.attn")


@pytest.fixture(scope="module")
def compacted(source: Path) -> Path:
    return compact(source, source.with_name("compacted.attn"))


def test_all_examples_come_into_one_segment(source: Path, compacted: Path) -> None:
    with attnstore.open(source) as before, attnstore.open(compacted) as after:
        assert len(before.info.segments) > 3
        assert len(after.info.segments) == 1
        assert after.info.n_examples == before.info.n_examples
    assert verify(compacted, deep=True) == []


def test_every_answer_is_that_of_the_source(source: Path, compacted: Path) -> None:
    same(answers(source, questions=MORE), answers(compacted, questions=MORE))


@pytest.mark.parametrize("keys", [{}, {"keep__precision": "compact"}, {"keep__precision": "exact"}])
@pytest.mark.parametrize("keep", [{}, {"keep__maps": "topk:3"}, {"keep__layers": [1], "keep__heads": [0, 2]}])
def test_codes_are_moved_bit_for_bit(tmp_path: Path, keys: dict[str, str], keep: dict[str, object]) -> None:
    made = maker(tmp_path)("source.attn", **keys, **keep)
    target = compact(made, tmp_path / "target.attn")
    assert verify(target, deep=True) == []
    assert codes(made) == codes(target)


def codes(path: Path) -> list[list[bytes]]:
    """The stored codes of every example, array by array."""
    found = []
    with attnstore.open(path) as store:
        kept = store.info.kept
        arrays = ["encoder"] if kept.topk is None else [f"encoder_topk_{what}" for what in ("key", "weight", "rest")]
        layers, heads = store.engine.cells.kept("encoder")
        rows = store.sql("select example, segment, cell_encoder, n_tokens from stored.examples order by example")
        for row in rows.to_arrow().to_pylist():
            for name in arrays:
                first, size = row["cell_encoder"], row["n_tokens"] * (kept.topk or row["n_tokens"])
                if name.endswith("rest"):
                    first, size = first // (kept.topk or 1), row["n_tokens"]
                cells = slice(first, first + size)
                heads_of = [(slice(layer, layer + 1), slice(head, head + 1)) for layer in layers for head in heads]
                read = store.engine.cells.codes
                found.append([read(row["segment"], name, *one, cells).tobytes() for one in heads_of])
    return found


def test_segments_close_at_the_given_size(source: Path, tmp_path: Path) -> None:
    with attnstore.open(source) as store:
        largest = max(segment.cells["encoder"] for segment in store.info.segments) * 2 * 3 * 2
    target = compact(source, tmp_path / "half.attn", largest * 2)
    with attnstore.open(source) as before, attnstore.open(target) as after:
        assert 1 < len(after.info.segments) < len(before.info.segments)
        assert all(sum(one.cells.values()) * 12 <= largest * 2 for one in after.info.segments)
    assert verify(target, deep=True) == []
    same(answers(source), answers(target))


def test_a_size_that_joins_nothing_copies_the_segments(source: Path, tmp_path: Path) -> None:
    target = compact(source, tmp_path / "same.attn", 1)
    before, after = tree(source / "segments"), tree(target / "segments")
    assert before == after


def test_annotations_and_kept_facts_come_along(tmp_path: Path) -> None:
    made = maker(tmp_path)("source.attn")
    labels = tmp_path / "labels.jsonl"
    labels.write_text("".join(f'{{"name": "s{n}", "label": "{"ab"[n % 2]}"}}\n' for n in range(7)))
    annotate_labels(made, labels)
    refresh(made, "head_facts", {"eps": 0.01})
    refresh(made, "offset_facts", {"reach": 3})
    target = compact(made, tmp_path / "target.attn")
    assert verify(target, deep=True) == []
    same(answers(made, "label = 'a'"), answers(target, "label = 'a'"))
    with attnstore.open(target) as store:
        assert store.engine.files.parameters("head_facts")["eps"] == 0.01  # type: ignore[index]
        assert store.engine.files.parameters("offset_facts") == {"reach": 3}
    assert maps_of(made) == maps_of(target)


def test_the_command_says_what_it_made(source: Path, tmp_path: Path) -> None:
    from click.testing import CliRunner

    ran = CliRunner().invoke(group, ["compact", str(source), str(tmp_path / "new.attn")])
    assert ran.exit_code == 0, ran.output
    assert "1 segment of" in ran.stderr
    assert verify(tmp_path / "new.attn") == []


def test_no_size_at_all_is_refused(source: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="segment_bytes=0"):
        compact(source, tmp_path / "none.attn", 0)
    assert list(tmp_path.iterdir()) == []
