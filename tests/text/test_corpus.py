"""This file proves that a corpus is read in order with unique names, and that unreadable files are named."""

import io
from pathlib import Path

import pytest

from attnstore.errors import BadInput
from attnstore.text.corpus import KINDS, Corpus, read
from attnstore.text.example import Example, Skipped


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_the_kinds_are_those_of_a_recipe() -> None:
    assert list(KINDS) == ["lines", "pairs", "conllu", "jsonl", "table", "links", "gap", "tokens", "images"]


def test_files_come_in_the_order_given_named_by_file_and_line(tmp_path: Path) -> None:
    b, a = write(tmp_path / "b.txt", "One.\n\nTwo.\n"), write(tmp_path / "a.txt", "Three.")
    found = list(read(Corpus("lines", (b, a))))
    assert [(item.name, item.where) for item in found] == [("b:1", "b.txt:1"), ("b:3", "b.txt:3"), ("a:1", "a.txt:1")]


def test_files_of_one_name_in_two_folders_give_different_names_and_documents(tmp_path: Path) -> None:
    paths = tuple(write(tmp_path / folder / "x.txt", "Text.") for folder in "pqr")
    found = list(read(Corpus("lines", paths)))
    assert [item.name for item in found] == ["x:1", "x#2:1", "x#3:1"]
    assert len({item.document for item in found if isinstance(item, Example)}) == 3


def test_a_name_that_the_corpus_gives_twice_is_an_error_that_names_both_places(tmp_path: Path) -> None:
    first = write(tmp_path / "one.jsonl", '{"id": "k", "text": "a"}\n')
    second = write(tmp_path / "two.jsonl", '{"id": "j", "text": "a"}\n{"id": "k", "text": "b"}\n')
    with pytest.raises(BadInput) as caught:
        list(read(Corpus("jsonl", (first, second))))
    assert caught.value.doing == f"reading {second}, line 2"
    assert "'k' again, after one.jsonl:1" in caught.value.found


def test_reading_is_lazy_after_the_files_were_looked_for(tmp_path: Path) -> None:
    good, bad = write(tmp_path / "good.txt", "Text.\n"), write(tmp_path / "bad.txt", b"\xff\n")
    items = read(Corpus("lines", (good, bad)))
    assert next(items).name == "good:1"
    with pytest.raises(BadInput):
        next(items)


def test_a_missing_file_and_a_folder_are_errors_before_anything_is_read(tmp_path: Path) -> None:
    good = write(tmp_path / "good.txt", "Text.\n")
    with pytest.raises(BadInput, match=r"absent\.txt: no such file"):
        read(Corpus("lines", (good, tmp_path / "absent.txt")))
    with pytest.raises(BadInput, match="it is a folder"):
        read(Corpus("lines", (tmp_path,)))


@pytest.mark.parametrize("content", ["", "\n\n", "\ufeff", " \r\n"])
@pytest.mark.parametrize("kind", ["lines", "conllu", "jsonl", "pairs"])
def test_a_file_with_nothing_in_it_is_an_error(tmp_path: Path, kind: str, content: str) -> None:
    with pytest.raises(BadInput, match=r"void\.txt, line 1: nothing to read"):
        list(read(Corpus(kind, (write(tmp_path / "void.txt", content),))))


def test_bytes_that_are_not_utf8_are_named_by_line_and_byte(tmp_path: Path) -> None:
    path = write(tmp_path / "old.txt", b"plain\nna\xefve\n")
    with pytest.raises(BadInput) as caught:
        list(read(Corpus("lines", (path,))))
    assert caught.value.doing == f"reading {path}, line 2"
    assert caught.value.found == "byte 3 of the line (0xef) is not UTF-8"
    assert caught.value.remedy == "Convert the file to UTF-8"


def test_utf16_is_recognised_in_the_message(tmp_path: Path) -> None:
    path = write(tmp_path / "wide.txt", "wide\n".encode("utf-16"))
    with pytest.raises(BadInput, match="looks like UTF-16"):
        list(read(Corpus("lines", (path,))))


def test_a_dash_reads_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("Über uns.\n".encode())))
    (example,) = read(Corpus("lines", (Path("-"),)))
    assert isinstance(example, Example)
    assert (example.name, example.text, example.where) == ("stdin:1", "Über uns.", "stdin:1")


@pytest.mark.parametrize(
    ("corpus", "found", "remedy"),
    [
        (Corpus("conlu", (Path("x"),)), "no such kind", "Did you mean 'conllu'?"),
        (Corpus("lines", ()), "no file", ""),
        (Corpus("lines", (Path("x"),), columns={"text": "t"}), "columns.text: no such field", ""),
        (
            Corpus("jsonl", (Path("x"),), columns={"lable": "t"}),
            "columns.lable: no such field",
            "Did you mean 'label'?",
        ),
        (Corpus("table", (Path("x"),), columns={"words": "t"}), "columns.words: no such field", ""),
    ],
)
def test_a_wrong_description_of_a_corpus_is_refused(corpus: Corpus, found: str, remedy: str) -> None:
    with pytest.raises(BadInput) as caught:
        read(corpus)
    assert found in caught.value.found
    assert remedy in caught.value.remedy


def test_a_file_listed_twice_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "x.txt", "Text.")
    with pytest.raises(BadInput, match="lists it twice"):
        read(Corpus("lines", (path, tmp_path / "." / "x.txt")))


def test_lines_hold_one_text_or_two_with_a_tab_between(tmp_path: Path) -> None:
    path = write(tmp_path / "x.txt", " One [SEP] text. \r\nFirst.\tSecond.\r\n\tSecond.\nFirst.\t \n")
    one, two, *skipped = read(Corpus("lines", (path,)))
    assert isinstance(one, Example)
    assert isinstance(two, Example)
    assert (one.text, one.second, one.document) == ("One [SEP] text.", None, "x")
    assert (two.text, two.second) == ("First.", "Second.")
    assert skipped == [
        Skipped("x:3", "the text before the tab is empty", "x.txt:3"),
        Skipped("x:4", "the text after the tab is empty", "x.txt:4"),
    ]


def test_characters_that_only_look_like_line_ends_stay_in_the_text(tmp_path: Path) -> None:
    path = write(tmp_path / "x.txt", "one\u2028two\x0bthree\x85four\n")
    (example,) = read(Corpus("lines", (path,)))
    assert isinstance(example, Example)
    assert example.text == "one\u2028two\x0bthree\x85four"


def test_a_line_with_two_tabs_is_an_error_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"x\.txt, line 2: 2 tabs"):
        list(read(Corpus("lines", (write(tmp_path / "x.txt", "a\nb\tc\td\n"),))))


def test_paragraphs_of_plain_text_are_separated_by_blank_lines(tmp_path: Path) -> None:
    path = write(tmp_path / "tale.txt", "It rained\nall day.\r\n\r\n \nThen it\nstopped.\n")
    found = list(read(Corpus("pairs", (path,))))
    assert [(item.name, item.text, item.document) for item in found if isinstance(item, Example)] == [
        ("tale:1", "It rained all day.", "tale"),
        ("tale:5", "Then it stopped.", "tale"),
    ]


def test_paragraphs_of_json_lines_name_their_document(tmp_path: Path) -> None:
    path = write(tmp_path / "p.jsonl", '{"article": "A", "text": "x"}\n{"article": "B", "text": "y"}\n')
    found = list(read(Corpus("pairs", (path,), columns={"document": "article"})))
    assert [item.document for item in found if isinstance(item, Example)] == ["A", "B"]
    with pytest.raises(BadInput, match=r"p\.jsonl, line 1: a paragraph without a document"):
        list(read(Corpus("pairs", (path,))))


def test_columns_mean_nothing_to_paragraphs_of_plain_text(tmp_path: Path) -> None:
    path = write(tmp_path / "tale.txt", "It rained.\n")
    with pytest.raises(BadInput, match="columns for a plain text file"):
        list(read(Corpus("pairs", (path,), columns={"document": "article"})))
