"""This file counts what the service does, for Prometheus."""

from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.process_collector import ProcessCollector

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Metrics:
    """The numbers of one server."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        own: dict[str, Any] = {"registry": self.registry}
        self.requests = Counter(
            "attnstore_requests", "Requests, by what was asked and how it ended", ("what", "status"), **own
        )
        self.seconds = Histogram("attnstore_worker_seconds", "Time of a request in a worker", buckets=_SECONDS, **own)
        self.sent = Counter("attnstore_sent_bytes", "Bytes of answers", **own)
        self.rows = Counter("attnstore_rows", "Rows of answers", **own)
        self.cached = Counter("attnstore_cached_answers", "Answers that came from the cache", **own)
        self.killed = Counter("attnstore_killed_workers", "Workers that were killed or died", **own)
        self.workers = Gauge("attnstore_workers", "Workers that run, with the one that stands by", **own)
        self.preparing = Gauge("attnstore_preparing", "Whether tables are computed beforehand now", **own)
        self.waiting = Gauge("attnstore_waiting_requests", "Requests that wait for a worker", **own)

    def text(self) -> bytes:
        """Everything in Prometheus' text format."""
        return generate_latest(self.registry)
