"""Tests of which paths a manifest may list."""

import pytest

from attnstore.format.listed_paths import check_paths


def test_the_paths_of_a_segment_pass() -> None:
    own = ["examples.parquet", "maps.zarr/zarr.json", "maps.zarr/encoder/zarr.json", "maps.zarr/encoder/c/10/0/3"]
    check_paths([*own, "é/语言.parquet", "console.parquet", "comet/aux1"], "segment.json")


@pytest.mark.parametrize(
    "path",
    [
        *("", "/", "/x", "x/", "a//b", ".", "..", "a/../b", "a/./b", "a\\b", "C:", "a\0", "a\n", "a\x7f", "e\u0301"),
        *("a.", "a ", "a /b", "CON", "con.parquet", "x/LPT1.txt", "nul .txt", "a?", "a*", "<a>", "a|b", '"', "\ud800"),
        *("x" * 256, "é" * 128, "/".join(["x" * 100] * 11), "segment.json", "Segment.JSON"),
    ],
)
def test_a_path_that_means_something_else_somewhere_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match=r"file name|surrogates"):
        check_paths([path], "segment.json")


@pytest.mark.parametrize("paths", [("a", "a"), ("a", "A"), ("ß", "SS"), ("a", "a/b"), ("x/A/b", "x/a")])
def test_two_paths_that_are_one_file_somewhere_are_refused(paths: tuple[str, str]) -> None:
    for order in (paths, paths[::-1]):
        with pytest.raises(ValueError, match="file name"):
            check_paths(order, "segment.json")
