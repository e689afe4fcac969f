"""What Prometheus is told; counts and times, never content."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from ekphory import __version__
from ekphory.service.extraction.verbs import ExtractionState

CONTENT_TYPE = CONTENT_TYPE_LATEST
_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


class Metrics:
    """The measurements of one process."""

    def __init__(self) -> None:
        registry = CollectorRegistry()
        self._registry = registry
        self._requests = Counter(
            "ekphory_requests",
            "Requests answered.",
            ["method", "route", "status"],
            registry=registry,
        )
        self._seconds = Histogram(
            "ekphory_request_seconds",
            "Time from a request to the end of its answer.",
            ["route"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.under_way = Gauge(
            "ekphory_requests_under_way", "Requests being answered.", registry=registry
        )
        self._stages = Histogram(
            "ekphory_search_stage_seconds",
            "Time that each stage of a search took.",
            ["stage"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.added = Counter(
            "ekphory_memories_added", "Messages and features remembered.", registry=registry
        )
        self._extraction = Gauge(
            "ekphory_extraction_episodes",
            "Episodes from which features are to be learnt (waiting), were given up (failed), or "
            "could not be handed over (unqueued).",
            ["state"],
            registry=registry,
        )
        self._stands_still = Gauge(
            "ekphory_extraction_stands_still",
            "1 while the language model cannot be used, as the process that answers knows.",
            registry=registry,
        )
        version = Gauge("ekphory_version", "Always 1.", ["version"], registry=registry)
        version.labels(__version__).set(1)

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count an answer."""
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def stage(self, name: str, milliseconds: float) -> None:
        """Note how long a stage of a search took."""
        self._stages.labels(name).observe(milliseconds / 1000)

    def extraction(self, state: ExtractionState) -> None:
        """Note how far the learning of features is."""
        for name in ("waiting", "failed", "unqueued"):
            self._extraction.labels(name).set(getattr(state, name))
        self._stands_still.set(state.out_of_order is not None)

    def exposed(self) -> bytes:
        """Give everything as Prometheus reads it."""
        return generate_latest(self._registry)
