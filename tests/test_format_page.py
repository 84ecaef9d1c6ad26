"""What the page of the format says is enough: its reader reads a store in a process that has no attnstore."""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from attnstore.format.quantise import PRECISIONS
from attnstore.job.run import ingest
from tests.conftest import SENTENCES, arrays_recipe, random_maps
from tests.pages import FENCE, ROOT, text_of


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The reader of the format page, as a file."""
    section = text_of(ROOT / "docs/format.md").partition("## A reader of its own\n")[2]
    path = tmp_path_factory.mktemp("reader") / "reader.py"
    path.write_text(FENCE.findall(section)[0][1], encoding="utf-8")
    return path


WITHOUT_ATTNSTORE = """
import sys
class Blocked:
    def find_spec(self, name, *rest):
        if name.partition(".")[0] == "attnstore":
            raise ImportError("attnstore is not to be used here")
sys.meta_path.insert(0, Blocked())
try:
    import attnstore
except ImportError:
    pass
else:
    raise SystemExit("attnstore could be imported")
import numpy as np
names = {"__name__": "reader"}
exec(compile(open(sys.argv[1], encoding="utf-8").read(), sys.argv[1], "exec"), names)
kinds = sys.argv[4:]
np.savez(sys.argv[3], **{f"{row['name']}/{kind}": w for kind in kinds for row, w in names["maps"](sys.argv[2], kind)})
assert not [name for name in sys.modules if name.startswith("attnstore")]
"""


def read_without_attnstore(reader: Path, store: Path, out: Path, *kinds: str) -> dict[str, NDArray[np.float32]]:
    """What the reader yields in a process that has no attnstore."""
    command = [sys.executable, "-W", "error", "-c", WITHOUT_ATTNSTORE, str(reader), str(store), str(out), *kinds]
    result = subprocess.run(command, capture_output=True, text=True, check=False, cwd=out.parent, timeout=60)
    assert result.returncode == 0, result.stderr
    with np.load(out) as file:
        return {name: file[name] for name in file.files}


def test_the_reader_has_fewer_than_thirty_lines(reader: Path) -> None:
    assert len([line for line in text_of(reader).splitlines() if line.strip()]) < 30


@pytest.mark.parametrize("precision", list(PRECISIONS))
def test_the_reader_reads_a_store_without_attnstore(
    reader: Path,
    make_store: Callable[..., Path],
    arrays_maps: Mapping[str, NDArray[np.float32]],
    tmp_path: Path,
    precision: str,
) -> None:
    store = make_store(keep__precision=precision)
    found = read_without_attnstore(reader, store, tmp_path / "read.npz", "encoder")
    assert set(found) == {f"{name}/encoder" for name in arrays_maps}
    code = PRECISIONS[precision]
    for name, true in arrays_maps.items():
        read = found[f"{name}/encoder"]
        assert read.shape == true.shape
        bound = code.half_step(code.encode(true))
        assert (np.abs(read - true) <= bound).all()
        assert np.allclose(read.sum(axis=-1), 1, atol=bound.sum(axis=-1).max() + 1e-6)
    assert (precision == "exact") == all(np.array_equal(found[f"{n}/encoder"], m) for n, m in arrays_maps.items())


def test_the_reader_reads_every_kind_and_every_segment(
    reader: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("attnstore.job.plan.SEGMENT_TOKENS", 1)  # a segment for each example
    rng = np.random.default_rng(0)
    maps, lines = {}, []
    for name, (n, m) in {"a": (2, 3), "b": (4, 1)}.items():
        maps[f"{name}/encoder"] = random_maps(rng, 2, 2, n, n)
        maps[f"{name}/decoder"] = random_maps(rng, 3, 2, m, m, causal=True)
        maps[f"{name}/cross"] = random_maps(rng, 3, 2, m, n)
        line = {"name": name, "text": "x" * n, "tokens": ["x"] * n, "target": "y", "target_tokens": ["y"] * m}
        lines.append(json.dumps({**line, "maps": "m.npz"}))
    np.savez(tmp_path / "m.npz", **maps)
    (tmp_path / "c.jsonl").write_text("\n".join(lines))
    ingest(arrays_recipe(tmp_path / "c.jsonl", keep__precision="exact"), tmp_path / "s").close()
    found = read_without_attnstore(reader, tmp_path / "s", tmp_path / "r.npz", "encoder", "decoder", "cross")
    assert set(found) == set(maps)
    assert all(np.array_equal(found[name], maps[name]) for name in maps)


def test_the_reader_is_a_program(reader: Path, tiny_store: Path) -> None:
    result = subprocess.run(
        [sys.executable, str(reader), str(tiny_store)], capture_output=True, text=True, check=True, timeout=60
    )
    assert sorted(line.split()[1] for line in result.stdout.splitlines()) == [f"s{n}" for n in range(len(SENTENCES))]
