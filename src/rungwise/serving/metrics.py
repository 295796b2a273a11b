"""What the server counts, in the text format of Prometheus.

No name of a picture and no word of a query is ever among it: requests are told apart by their route alone.
"""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

KIND = "text/plain; version=0.0.4; charset=utf-8"
"""Media type of the text."""

_METHODS = frozenset({"GET", "HEAD", "POST", "DELETE", "OPTIONS", "PUT", "PATCH"})
_SECONDS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_QUERIES = (1, 2, 4, 8, 16, 32, 64)


class Metrics:
    """Counters of one server.

    >>> metrics = Metrics()
    >>> metrics.answered("GET", "/search", 200, 0.004)
    >>> 'rungwise_requests_total{method="GET",route="/search",status="200"} 1.0' in metrics.text().decode()
    True
    """

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)  # memory, processor time and open files, where the system tells
        self._requests = Counter(
            "rungwise_requests",
            "Requests that were answered, by method, route and status.",
            ("method", "route", "status"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "rungwise_request_seconds",
            "Seconds from the head of a request to the end of its answer.",
            ("route",),
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._queries = Histogram(
            "rungwise_batch_queries",
            "Queries that were encoded in one call of the model.",
            buckets=_QUERIES,
            registry=self._registry,
        )

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request.

        Args:
            method: Of HTTP; one that nobody knows counts as ``"other"``.
            route: The pattern of the address, never the address.
            status: Of the answer.
            seconds: That it took.
        """
        known = method if method in _METHODS else "other"
        self._requests.labels(known, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def encoded(self, queries: int) -> None:
        """Count a call of the model."""
        self._queries.observe(queries)

    def watch(self, name: str, meaning: str, value: Callable[[], float]) -> None:
        """Have a number looked up whenever somebody reads the text.

        Args:
            name: What follows ``rungwise_``.
            meaning: For people, in a sentence.
            value: The number now.
        """
        Gauge(f"rungwise_{name}", meaning, registry=self._registry).set_function(value)

    def text(self) -> bytes:
        """Everything, as Prometheus reads it."""
        return generate_latest(self._registry)
