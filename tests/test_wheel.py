"""This file tests what the wheel carries: one package, the two shipped folders, and no hard need of torch."""

import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = folder.glob("*.whl")
    with zipfile.ZipFile(path) as opened:
        yield opened


def test_only_the_package_and_its_metadata_are_at_the_top(wheel: zipfile.ZipFile) -> None:
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert "attnstore" in tops
    assert [top for top in tops - {"attnstore"} if not top.endswith(".dist-info")] == []


@pytest.mark.parametrize("folder", ["ingest", "queries"])
def test_a_shipped_folder_is_whole(wheel: zipfile.ZipFile, folder: str) -> None:
    inside = f"attnstore/_shipped/{folder}/"
    shipped = {name.removeprefix(inside) for name in wheel.namelist() if name.startswith(inside)}
    source = {path.relative_to(ROOT / folder).as_posix() for path in (ROOT / folder).rglob("*") if path.is_file()}
    assert shipped == source
    assert shipped


def test_every_module_of_the_package_is_in_the_wheel(wheel: zipfile.ZipFile) -> None:
    source = {path.relative_to(ROOT).as_posix() for path in (ROOT / "attnstore").rglob("*.py")}
    assert source <= set(wheel.namelist())
    assert "attnstore/py.typed" in wheel.namelist()


def test_reading_needs_no_model_library(wheel: zipfile.ZipFile) -> None:
    (name,) = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    metadata = Parser().parsestr(wheel.read(name).decode())
    needed = [line for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line]
    hard = {re.split(r"[^\w.-]", line)[0] for line in needed}
    assert {"zarr", "duckdb", "pyarrow", "numpy", "click"} <= hard
    assert hard.isdisjoint({"torch", "transformers", "spacy"})


def test_the_package_finds_its_folders_away_from_the_checkout(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    wheel.extractall(tmp_path)
    # The unpacked wheel comes first on the path, before a checkout that is installed for development.
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from attnstore.paths import shipped\n"
        "print((shipped('ingest') / 'quickstart.toml').read_text(encoding='utf-8'))\n"
        "print(shipped('queries'))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (ROOT / "ingest" / "quickstart.toml").read_text(encoding="utf-8") in done.stdout
    assert done.stdout.strip().endswith(str(tmp_path / "attnstore" / "_shipped" / "queries"))
