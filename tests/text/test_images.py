"""This file tests the reader of images: files, tables of files, and what is refused."""

from pathlib import Path

import pytest

from attnstore.errors import BadInput
from attnstore.text.corpus import Corpus, read
from attnstore.text.example import Example, Skipped


def files(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"any bytes: nobody looks at pixels here")


def examples(*paths: Path, **columns: str) -> list[Example | Skipped]:
    return list(read(Corpus("images", paths, columns=columns)))


def test_each_file_is_an_example_named_by_it(tmp_path: Path) -> None:
    files(tmp_path, "cat.png", "dog.jpg")
    found = examples(tmp_path / "cat.png", tmp_path / "dog.jpg")
    assert found == [
        Example("cat", "cat.png", image=tmp_path / "cat.png", where="cat.png"),
        Example("dog", "dog.jpg", image=tmp_path / "dog.jpg", where="dog.jpg"),
    ]


def test_a_table_names_files_beside_it_with_their_labels(tmp_path: Path) -> None:
    files(tmp_path, "a/one.png", "two.png")
    (tmp_path / "labels.csv").write_text("file,label,split\na/one.png,seven,dev\ntwo.png,,\n", encoding="utf-8")
    found = examples(tmp_path / "labels.csv")
    assert found == [
        Example("a/one", "a/one.png", label="seven", split="dev", image=tmp_path / "a/one.png", where="labels.csv:2"),
        Example("two", "two.png", image=tmp_path / "two.png", where="labels.csv:3"),
    ]


def test_a_full_path_is_read_and_not_told(tmp_path: Path) -> None:
    files(tmp_path, "far/one.png")
    (tmp_path / "t.csv").write_text(f"image\n{tmp_path / 'far/one.png'}\n", encoding="utf-8")
    (found,) = examples(tmp_path / "t.csv")
    assert found == Example("one", "one.png", image=tmp_path / "far/one.png", where="t.csv:2")


def test_columns_may_have_other_names(tmp_path: Path) -> None:
    files(tmp_path, "one.png")
    (tmp_path / "t.tsv").write_text("id\tpath\tclass\nfirst\tone.png\tcat\n", encoding="utf-8")
    (found,) = examples(tmp_path / "t.tsv", image="path", label="class")
    assert isinstance(found, Example)
    assert (found.name, found.label, found.image) == ("first", "cat", tmp_path / "one.png")


def test_a_row_without_a_file_is_skipped_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("image,label\n,cat\n", encoding="utf-8")
    assert examples(tmp_path / "t.csv") == [Skipped("t:2", "it names no file", "t.csv:2")]


@pytest.mark.parametrize(
    ("table", "found"),
    [
        ("image,label\nnone.png,cat\n", r"line 2: no file .*none\.png"),
        ("picture,label\none.png,cat\n", "line 2: there is no column 'image' of image files, only 'label', 'picture'"),
        ("image,label\none.png,a\none.png,b\n", "line 3: the name 'one' again"),
        ("image,label\n", "the file is empty"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused_with_file_and_line(tmp_path: Path, table: str, found: str) -> None:
    files(tmp_path, "one.png")
    (tmp_path / "t.csv").write_text(table, encoding="utf-8")
    with pytest.raises(BadInput, match=found):
        examples(tmp_path / "t.csv")


def test_an_image_that_is_listed_and_matched_too_is_refused(tmp_path: Path) -> None:
    files(tmp_path, "one.png")
    (tmp_path / "labels.csv").write_text("file,label\none.png,a\n", encoding="utf-8")
    with pytest.raises(BadInput, match="the name 'one' again"):
        examples(tmp_path / "labels.csv", tmp_path / "one.png")


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such file"):
        examples(tmp_path / "none.png")
