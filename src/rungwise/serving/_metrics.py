"""Counters of the server, in the text format of Prometheus.

They never hold a name of a picture or a word of a query: requests are distinguished only by route.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

KIND = "text/plain; version=0.0.4; charset=utf-8"
"""Media type of the text."""

_METHODS = frozenset({"GET", "HEAD", "POST", "DELETE", "OPTIONS", "PUT", "PATCH"})
_READY = "/ready"
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

        self._searches = Counter(
            "rungwise_searches",
            "First pages of searches with words that were answered: with pictures that fit, or with nothing.",
            ("outcome",),
            registry=self._registry,
        )
        for outcome in ("found", "nothing"):
            self._searches.labels(outcome)  # so that a share can be reckoned before the first of them
        self._ready = Gauge(
            "rungwise_ready",
            "Whether searches would be answered, as the last look at /ready found it: 1, 0, or NaN before the first.",
            registry=self._registry,
        )
        self._ready.set(math.nan)

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request and its seconds; ``route`` is the pattern of the address, never the address."""
        known = method if method in _METHODS else "other"
        self._requests.labels(known, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)
        if route == _READY and status in (200, 503):
            self._ready.set(status == 200)

    def searched(self, *, nothing: bool) -> None:
        """Count a search; ``nothing`` says that no picture fits."""
        self._searches.labels("nothing" if nothing else "found").inc()

    def encoded(self, queries: int) -> None:
        """Count a call of the model with its number of queries."""
        self._queries.observe(queries)

    def watch(self, name: str, meaning: str, value: Callable[[], float]) -> None:
        """Add a gauge ``rungwise_NAME``, looked up at each reading; ``meaning`` is a sentence for people."""
        Gauge(f"rungwise_{name}", meaning, registry=self._registry).set_function(value)

    def text(self) -> bytes:
        """All counters as Prometheus reads them."""
        return generate_latest(self._registry)
