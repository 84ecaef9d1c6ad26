"""This file tests where a model is looked for."""

import sys
from pathlib import Path

import pytest

from attnstore.capture.locate import locate
from attnstore.errors import BadInput


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An installed package that fails when imported and carries a folder `model`."""
    (tmp_path / "carries_a_model" / "model").mkdir(parents=True)
    (tmp_path / "carries_a_model" / "__init__.py").write_text("raise RuntimeError('imported')\n")
    monkeypatch.syspath_prepend(tmp_path)
    return "carries_a_model"


def test_a_package_is_found_without_importing_it(package: str, tmp_path: Path) -> None:
    assert locate(f"package:{package}/model") == (tmp_path / package / "model").resolve()
    assert package not in sys.modules


def test_a_package_may_be_the_model_folder_itself(package: str, tmp_path: Path) -> None:
    assert locate(f"package:{package}") == (tmp_path / package).resolve()


def test_a_missing_package_says_what_to_install() -> None:
    with pytest.raises(BadInput, match="no package 'no_such_package_here' is installed") as caught:
        locate("package:no_such_package_here/model")
    assert "Install" in caught.value.remedy


def test_a_missing_folder_names_those_that_the_package_has(package: str) -> None:
    with pytest.raises(BadInput, match="no folder 'weights'; expected one of its folders: model"):
        locate(f"package:{package}/weights")


@pytest.mark.parametrize("inside", ["..", "../../elsewhere", "/etc"])
def test_a_package_name_does_not_lead_out_of_the_package(package: str, inside: str) -> None:
    with pytest.raises(BadInput):
        locate(f"package:{package}/{inside}")


@pytest.mark.parametrize("name", ["package:", "package:a.b/model", "package:a-b/model"])
def test_what_is_no_package_name_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match="is no package name"):
        locate(name)


def test_a_folder_wins_over_a_hub_id_of_the_same_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert locate("owner/name") == "owner/name"
    (tmp_path / "owner" / "name").mkdir(parents=True)
    assert locate("owner/name") == Path("owner/name")


@pytest.mark.parametrize("name", ["bert-base-uncased", "google-bert/bert-base-uncased", "a/b.c_d-1"])
def test_other_names_are_hub_ids(name: str) -> None:
    assert locate(name) == name


@pytest.mark.parametrize("name", ["./missing", "/missing/folder", "~/missing_folder", "a/b/c", "", "owner/"])
def test_a_missing_folder_is_no_hub_id(name: str) -> None:
    with pytest.raises(BadInput, match="no such folder"):
        locate(name)


def test_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"")
    with pytest.raises(BadInput, match="it is a file"):
        locate(str(tmp_path / "model.safetensors"))
