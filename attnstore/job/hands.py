"""This file chooses where workers come from: none, processes of this machine, or actors on Ray."""

from collections.abc import Iterator
from contextlib import contextmanager

from attnstore.errors import BadInput
from attnstore.job.pool import Hands
from attnstore.job.processes import Processes


@contextmanager
def hands_for(workers: int | None, ray: str | None, device: str, doing: str) -> Iterator[Hands | None]:
    """Workers as `workers` and `ray` ask for; None where this process is to do everything.

    BadInput for a number below 1, and where Ray cannot be reached or has not so many CPUs or GPUs.
    """
    if workers is not None and workers < 1:
        raise BadInput(doing, f"workers = {workers}", "1 or more")
    if ray is not None:
        from attnstore.job.on_ray import Actors  # which connects to the cluster

        with Actors(ray, workers, device, doing) as actors:
            yield actors
    else:
        yield Processes(workers) if workers is not None and workers > 1 else None
