"""The common part of our applications: access, counters, log, one-line errors and checked parameters.

:func:`new_app` makes the search page, the demo and the grading page; there is no other way in.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from functools import partial
from importlib.metadata import version
from pathlib import Path
from urllib.parse import unquote_plus

from fastapi import Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.requests import ClientDisconnect

from rungwise.core import UnavailableError, UserError, in_words
from rungwise.core.output import printable
from rungwise.serving._metrics import KIND, Metrics
from rungwise.serving.access import (
    HEADERS,
    AccessGuard,
    AccessTokens,
    NeededRight,
    RequestWatch,
    ServerSettings,
    known_parameters,
)
from rungwise.serving.queues import BusyError, LateError
from rungwise.serving.schemas import json_answer, refusals
from rungwise.serving.schemas.responses import Refusal

Lifespan = Callable[[FastAPI], AbstractAsyncContextManager[None]]
"""Context in which an application's server runs."""

_log = logging.getLogger(__name__)

_NOBODY = 499
"""Status of an answer that nobody waits for any more, as nginx counts it."""
_LONGEST_MESSAGE = 1000
_PATH = re.compile(r"(?<![\w.~%-])(?:[A-Za-z]:\\|/([^\s/'\"`:;,()]+))[^\s'\"`:;,()]*")
"""Pattern of an absolute path in a message, with its first folder; on Windows a drive."""


def new_app(
    title: str,
    settings: ServerSettings | None = None,
    *,
    metrics: Metrics | None = None,
    places: Mapping[Path, str] | None = None,
    lifespan: Lifespan | None = None,
    needed: NeededRight | None = None,
) -> FastAPI:
    """Application without operations.

    Args:
        title: Title of the interface.
        settings: Who is let in, and the log of requests; the rest is not read.
        metrics: Counters of requests, if any.
        places: Files and folders that errors may name, with the names that visitors read instead.
        lifespan: Context in which the server runs, if any.
        needed: Function that gives the right that a request needs of a token; None for all rights.

    Raises:
        UserError: If the token is too short, or both a token and several tokens were given.
    """
    settings = settings or ServerSettings()
    tokens = settings.known_tokens
    app = FastAPI(
        title=title,
        version=version("rungwise"),
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan if tokens is None else _following(tokens, lifespan),
        dependencies=[Depends(known_parameters)],
    )
    _answer_errors_in_one_line(app, partial(without_places, places=places or {}))
    app.add_middleware(AccessGuard, names=settings.allowed_hosts, tokens=tokens, needed=needed)
    app.add_middleware(RequestWatch, metrics=metrics or Metrics(), log=settings.log)
    return app


def answer_metrics(app: FastAPI, metrics: Metrics) -> None:
    """Add the operation ``GET /metrics``, by which Prometheus reads the counters of an application."""

    @app.get("/metrics", response_class=Response, responses=refusals() | _METRICS, tags=["server"])
    async def measured() -> Response:
        """What the server counts, for Prometheus."""
        return Response(metrics.text(), headers={"Content-Type": KIND})


_METRICS: dict[int | str, dict[str, object]] = {
    200: {"description": "The counters.", "content": {"text/plain": {"schema": {"type": "string"}}}}
}


def _following(tokens: AccessTokens, lifespan: Lifespan | None) -> Lifespan:
    """A context that also reads tokens in a file anew when they change."""

    @asynccontextmanager
    async def both(app: FastAPI) -> AsyncIterator[None]:
        async with tokens.followed(), lifespan(app) if lifespan is not None else nullcontext():
            yield

    return both


def without_places(message: str, asked: str, places: Mapping[Path, str]) -> str | None:
    """Message of an error without paths of this machine; None if it cannot be told without them.

    Args:
        message: Text of the error.
        asked: Text that the visitor sent, which may be repeated.
        places: Files and folders that errors may name, with the names that visitors read instead.

    >>> folder = Path("/srv/pictures.index")
    >>> without_places("/srv/pictures.index: 2 searches have graded hits", "", {folder: "the index"})
    'the index: 2 searches have graded hits'
    >>> without_places("/etc/hostname: damaged", "", {}) is None
    True
    >>> without_places("filter: no picture has a column '/etc/x'", "where='/etc/x' == 1", {})
    "filter: no picture has a column '/etc/x'"
    """
    for place, name in places.items():
        for written in {str(place), str(place.absolute()), str(place.resolve())}:
            found_here = re.compile(rf"(?<![^\s'\"`(]){re.escape(written)}(?=[/\\:,])")
            message = found_here.sub(name.replace("\\", "\\\\"), message)
    for found in _PATH.finditer(message):
        if found[0] not in asked and (found[1] is None or os.path.lexists(f"/{found[1]}")):
            return None
    return message


def _shortened(message: str) -> str:
    """The message in one line; of a long one the beginning, and the end, which holds the remedy."""
    line = " ".join(message.split())
    half = _LONGEST_MESSAGE // 2
    return line if len(line) <= _LONGEST_MESSAGE else f"{line[:half]} … {line[-half:]}"


def _answer_errors_in_one_line(app: FastAPI, tellable: Callable[[str, str], str | None]) -> None:
    """Answer every error of an application as ``{"error": "one line"}``."""

    def error(request: Request, status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
        query = unquote_plus(request.scope["query_string"].decode("latin-1"))
        told = tellable(message, f"{request.scope['path']} {query}")
        if told is None:
            _log.warning("%s", printable(" ".join(message.split())))
            told = "something is wrong with a file of the server; its log says more"
        return json_answer(Refusal(_shortened(told)), status, headers)

    @app.exception_handler(UserError)
    async def bad_input(request: Request, problem: UserError) -> Response:
        return error(request, 422, str(problem))

    @app.exception_handler(UnavailableError)
    async def away(request: Request, problem: UnavailableError) -> Response:
        # Where the store is, concerns those who run the server, and no visitor.
        _log.warning("%s", printable(str(problem)))
        message = "the store of the index does not answer; try again in a moment"
        return error(request, 503, message, {"Retry-After": "5"})

    @app.exception_handler(RequestValidationError)
    async def bad_request(request: Request, problem: RequestValidationError) -> Response:
        first = problem.errors()[0]
        place = [str(part) for part in first["loc"] if part not in ("query", "path", "body")]
        return error(request, 422, f"{'.'.join(place) or 'request'}: {in_words(first)}")

    @app.exception_handler(StarletteHTTPException)
    async def refused(request: Request, problem: StarletteHTTPException) -> Response:
        headers = dict(problem.headers or {})
        if problem.status_code == 405:  # files that stand still do not say what they allow
            allowed = headers.get("Allow", "GET")
            headers["Allow"] = f"{allowed}, HEAD" if allowed == "GET" else allowed
        return error(request, problem.status_code, str(problem.detail), headers)

    @app.exception_handler(BusyError)
    async def busy(request: Request, problem: BusyError) -> Response:
        return error(request, 503, "there is too much to do; try again in a moment", {"Retry-After": "5"})

    @app.exception_handler(LateError)
    async def late(request: Request, problem: LateError) -> Response:
        message = "the store of the index did not answer in time; try again in a moment"
        return error(request, 503, message, {"Retry-After": "5"})

    @app.exception_handler(MemoryError)
    async def out_of_memory(request: Request, problem: MemoryError) -> Response:
        message = "there is not enough memory for this now; try again in a moment"
        return error(request, 503, message, {"Retry-After": "5"})

    @app.exception_handler(ClientDisconnect)
    async def left(_: Request, problem: ClientDisconnect) -> Response:
        return Response(status_code=_NOBODY)

    @app.exception_handler(Exception)
    async def broken(request: Request, problem: Exception) -> Response:
        return error(request, 500, "something is wrong in the server; its log says more", HEADERS)
