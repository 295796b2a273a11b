"""Running an application: until Ctrl-C, or for the length of a ``with`` block."""

from __future__ import annotations

import asyncio
import errno
import math
import os
import signal
import socket
import threading
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType

import uvicorn
from fastapi import FastAPI

from rungwise.core import UserError
from rungwise.index import Index, Meaning, Searcher
from rungwise.models import DualEncoder
from rungwise.serving._app import create_app
from rungwise.serving._limits import ServingLimits
from rungwise.serving.access import (
    BACKLOG,
    Connections,
    LimitedConnection,
    ServerSettings,
    addresses,
    check_guarded,
    ignoring_disconnects,
    is_loopback,
    own_names,
    resolved,
    with_token,
)
from rungwise.serving.searches import SearchProcesses, warmed
from rungwise.serving.state import Reranker

THREAD_NAME = "rungwise-search-page"
"""Name of the thread in which :func:`background` serves."""

MakeApp = Callable[[ServerSettings, str], FastAPI]
"""Function that makes an application, given its settings, with all names that are let in, and its socket's address."""

_PORT = 8000


class _Server(uvicorn.Server):
    """A server that reports when it answers, watches its connections, and stops as it was asked to."""

    def __init__(self, app: FastAPI, limits: ServingLimits) -> None:
        config = uvicorn.Config(
            ignoring_disconnects(app),
            # One loop wherever it runs: others, where they are installed, close connections in ways of their own.
            loop="asyncio",
            http=LimitedConnection,
            ws="none",
            # What uvicorn warns of is what strangers send.
            log_level="error",
            access_log=False,
            server_header=False,
            # Whom a request comes from is who has connected: clients are counted by it.
            proxy_headers=False,
            backlog=BACKLOG,
            h11_max_incomplete_event_size=limits.header_bytes,
            timeout_graceful_shutdown=math.ceil(limits.graceful_seconds) + 1,
        )
        super().__init__(config)
        self.server_state = self._connections = Connections(limits)
        self.when_started: Callable[[], object] = lambda: None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.when_started()

    async def on_tick(self, counter: int) -> bool:
        self._connections.look(asyncio.get_running_loop().time())
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._connections.stopping = True
        # Before uvicorn's own limit, at which it would report every answer that is still under way as a failure.
        loop = asyncio.get_running_loop()
        cutting = loop.call_later(self._connections.limits.graceful_seconds, self._connections.cut_off)
        await super().shutdown(sockets)
        cutting.cancel()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.should_exit:  # asked a second time: at once
            signal.signal(sig, signal.SIG_DFL)
            signal.raise_signal(sig)
        self.should_exit = True


def serve(
    index: Index,
    model: DualEncoder,
    *,
    settings: ServerSettings | None = None,
    open_browser: bool = True,
    ready: Callable[[str], None] | None = None,
    meaning: Meaning | None = None,
    reranker: Reranker | None = None,
    reload: Callable[[Index], DualEncoder] | None = None,
    processes: SearchProcesses | None = None,
) -> None:
    """Serve the search page until Ctrl-C or SIGTERM.

    Answers under way may then take a few seconds more (``settings.limits.graceful_seconds``); a second signal ends the
    process at once.

    Args:
        index: Index to search.
        model: Model that built the index.
        settings: Where the server listens, who is let in, and what strangers may hold of it.
        open_browser: Whether to open the page in a browser.
        ready: Called with the page's address, without the token, in its own thread, once the page answers.
        meaning: Source of known words near in meaning to an unknown one.
        reranker: Model that reranks the first hits of searches with words.
        reload: Function that loads the model of an index that takes the place of this one and was built by another
            model; it is called in a thread. None serves the old index on.
        processes: Processes that search beside this one; None searches in this one.

    Raises:
        UserError: If the port cannot be used, another model built the index, or other machines can reach the server and
            neither a token nor ``open_to_all`` was given.
    """
    serve_app(
        _search_app(index, model, settings, meaning, reranker, reload, processes),
        settings=settings,
        open_browser=open_browser,
        ready=ready,
    )


def serve_app(
    make: MakeApp,
    *,
    settings: ServerSettings | None = None,
    open_browser: bool = True,
    ready: Callable[[str], None] | None = None,
) -> None:
    """Serve any application of ours until Ctrl-C.

    ``make`` makes the application; the other arguments and errors are those of :func:`serve`.
    """
    settings = settings or ServerSettings()
    with _ready(make, settings, _PORT) as (server, listener, address):

        def announce() -> None:
            if ready is not None:
                ready(address)
            if open_browser:
                webbrowser.open(with_token(address, settings.token))

        # A thread, because the server must go on to answer while the caller or the browser asks.
        server.when_started = threading.Thread(target=announce, daemon=True).start
        server.run(sockets=[listener])


@contextmanager
def background(
    index: Index,
    model: DualEncoder,
    *,
    settings: ServerSettings | None = None,
    meaning: Meaning | None = None,
    reranker: Reranker | None = None,
    reload: Callable[[Index], DualEncoder] | None = None,
    processes: SearchProcesses | None = None,
) -> Iterator[str]:
    """Serve from a thread while the block runs; gives the page's address, without the token.

    The arguments and errors are those of :func:`serve`.
    """
    make = _search_app(index, model, settings, meaning, reranker, reload, processes)
    with background_app(make, settings=settings) as address:
        yield address


@contextmanager
def background_app(make: MakeApp, *, settings: ServerSettings | None = None) -> Iterator[str]:
    """Serve any application of ours from a thread while the block runs, with the arguments of :func:`serve_app`."""
    with _ready(make, settings or ServerSettings(), 0) as (server, listener, address):
        begun = threading.Event()
        server.when_started = begun.set

        def run() -> None:
            try:
                server.run(sockets=[listener])
            finally:
                begun.set()  # also where it ended before it answered

        thread = threading.Thread(target=run, name=THREAD_NAME, daemon=True)
        thread.start()
        try:
            begun.wait()
            if not server.started:
                raise RuntimeError("the server did not start")
            yield address
        finally:
            server.should_exit = True
            thread.join()


@contextmanager
def _ready(make: MakeApp, settings: ServerSettings, port: int) -> Iterator[tuple[_Server, socket.socket, str]]:
    """A server, the socket for it to listen on, and the address for a browser on this machine.

    Args:
        make: Function that makes the application.
        settings: Settings of the server.
        port: Port where the settings name none.
    """
    with _listening(settings.host, port if settings.port is None else settings.port) as listener:
        bound, port = listener.getsockname()[:2]
        check_guarded(bound, settings.known_tokens is not None, settings.open_to_all)
        names = (*own_names(settings.host, bound), *(settings.allowed_hosts or ()))
        server = _Server(make(replace(settings, allowed_hosts=names), bound), settings.limits)
        yield server, listener, addresses(settings.host, bound, port)[0]


@contextmanager
def _listening(host: str, port: int) -> Iterator[socket.socket]:
    """Context with a bound socket."""
    if not 0 <= port <= 65535:
        raise UserError(f"port {port}: not a port; choose one of 1024 to 65535, or 0 for any that is free")
    family, kind, protocol, _, place = resolved(host, port)
    with socket.socket(family, kind, protocol) as listener:
        if os.name == "posix":
            # Elsewhere this option would let two servers share a port.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(place)
        except OSError as error:
            raise _unusable(host, port, error) from error
        yield listener


def _search_app(
    index: Index,
    model: DualEncoder,
    settings: ServerSettings | None,
    meaning: Meaning | None,
    reranker: Reranker | None,
    reload: Callable[[Index], DualEncoder] | None,
    processes: SearchProcesses | None,
) -> MakeApp:
    """Function that makes the search page; a first search is made before."""
    warmed(Searcher(index, model, meaning=meaning))

    only_locally = settings is None or not settings.allowed_hosts

    def make(settings: ServerSettings, bound: str) -> FastAPI:
        return create_app(
            index,
            model,
            settings=settings,
            meaning=meaning,
            # Names beside its own mean that another machine stands before this one.
            only_here=is_loopback(bound) and only_locally,
            reranker=reranker,
            reload=reload,
            processes=processes,
        )

    return make


def _unusable(host: str, port: int, error: OSError) -> UserError:
    if error.errno == errno.EADDRINUSE:
        return UserError(f"port {port} of {host} is taken; choose another, or 0 for any that is free")
    if error.errno in (errno.EACCES, errno.EPERM):
        return UserError(f"port {port} of {host} may not be used; choose one above 1023")
    return UserError(f"cannot listen on {host}, port {port} ({error.strerror}); choose another host or port")
