"""Log and counters of requests, which stand before everything else."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from threading import Lock
from time import perf_counter
from typing import TextIO
from urllib.parse import parse_qsl

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rungwise.serving._limits import client_key
from rungwise.serving._metrics import Metrics

UNKNOWN_ROUTE = "none"
"""Route of requests that no operation takes, or that were refused before routing."""

_TEXTS = frozenset({"q", "where", "like", "unlike", "id"})


class RequestLog:
    """Log of one line of JSON for every request: ``at, method, route, status, ms, bytes, client, who``.

    ``who`` is the name of the token, where tokens have names. The requested address is left out, since it holds ids and
    the words of queries, and so is every header, since one of them is the token.

    Args:
        stream: Stream for the lines.
        queries: Whether to log the query too, as ``query``.
    """

    def __init__(self, stream: TextIO, *, queries: bool = False) -> None:
        self.stream = stream
        self.queries = queries
        self._lock = Lock()

    def write(self, scope: Scope, route: str, status: int, seconds: float, size: int) -> None:
        """Write the line of one request."""
        line: dict[str, object] = {
            "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "method": scope["method"],
            "route": route,
            "status": status,
            "ms": round(1000 * seconds, 1),
            "bytes": size,
            "client": client_key(scope["client"][0]) if scope.get("client") else "",
            "who": scope["visitor"].name if "visitor" in scope else "",
        }
        if self.queries:
            pairs = parse_qsl(scope["query_string"].decode("latin-1"))
            line["query"] = [pair for pair in pairs if pair[0] in _TEXTS]
        # Everything but ASCII is escaped: no line of a stranger can end this one or colour a terminal.
        text = json.dumps(line)
        with self._lock:
            self.stream.write(f"{text}\n")
            self.stream.flush()


class RequestWatch:
    """Middleware that counts and logs requests."""

    def __init__(self, app: ASGIApp, metrics: Metrics, log: RequestLog | None = None) -> None:
        self.app = app
        self.metrics = metrics
        self.log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and record the answer."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, status, size = perf_counter(), 500, 0  # a failure is answered by what stands before this

        async def answer(message: Message) -> None:
            nonlocal status, size
            if message["type"] == "http.response.start":
                status = message["status"]
            elif message["type"] == "http.response.body":
                size += len(message.get("body", b""))
            await send(message)

        try:
            await self.app(scope, receive, answer)
        finally:
            seconds = perf_counter() - start
            route = getattr(scope.get("route"), "path_format", UNKNOWN_ROUTE)
            self.metrics.answered(scope["method"], route, status, seconds)
            if self.log is not None:
                self.log.write(scope, route, status, seconds, size)
