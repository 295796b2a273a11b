"""What a connection may hold of the server: a place among the others, time to speak and to listen, and nothing after.

uvicorn reads requests and writes answers, but lets a client take as long as it likes for either, and anyone open as
many connections as the system gives. Here every connection knows whose turn it is (:class:`Turn`); a table
(:class:`Connections`) counts them by client, and looks now and then for those whose client has let its time pass.
A request of which two servers could disagree where it ends is refused (:class:`_StrictParser`).

When all places are taken, a connection that waits for a request makes room, of the client that has most of them and
the longest waiting first, as nginx reuses its idle ones. Where none waits, the newcomer is refused with status 503.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import weakref
from collections import defaultdict
from collections.abc import Iterable
from enum import Enum, auto
from http import HTTPStatus
from typing import Any, cast

import h11
import uvicorn
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from rungwise.serving.limits import ServingLimits, client_key

BACKLOG = 128
"""Connections that the system accepts for a server that is busy; so many may come at once."""

LINGER_SECONDS = 2.0
"""For which a refused client may go on sending. Closed at once, its connection would be reset and the answer lost."""

FRESH_SECONDS = 1.0
"""For which a connection that has sent nothing keeps its place: its request may have come, and not been read yet."""

_OTHER_FILES = 64
_REFUSED_AT_ONCE = 64


class Turn(Enum):
    """Whom a connection waits for."""

    HEAD = auto()
    """For the client: the head of its first request, or of another that it has begun."""
    BODY = auto()
    """For the client: the body of a request."""
    ANSWER = auto()
    """For the server."""
    IDLE = auto()
    """For nobody: an answer was given, and no other request has begun."""
    REST = auto()
    """For the client to have done: it was answered, but still sends, or has to take what was written."""


class Connections(ServerState):
    """The connections of one server, counted by client.

    Args:
        limits: What they may hold.

    Attributes:
        limits: As given.
        most: How many there may be: as the limits say, or fewer where the system lets this process open fewer files. A
            connection may need two, its own and that of a picture.
        stopping: Whether newcomers are turned away, because the server was told to stop.

    >>> Connections(ServingLimits(connections=100)).most
    100
    """

    def __init__(self, limits: ServingLimits) -> None:
        super().__init__()
        self.limits = limits
        self.stopping = False
        self.most = max(1, min(limits.connections, (_most_files() - BACKLOG - _OTHER_FILES) // 2))
        self._of_client: defaultdict[str, set[LimitedConnection]] = defaultdict(set)
        self._inside = 0

    def __len__(self) -> int:
        """Connections that have a place; those that were refused are open a little longer, but have none."""
        return self._inside

    def refusal(self, newcomer: LimitedConnection) -> str:
        """Give a connection a place, making room if need be; or say in one line why it has none."""
        if self.stopping:
            return "the server is stopping"
        own = self._of_client[newcomer.client_key]
        if len(own) >= self.limits.connections_per_client and not self._make_room(own):
            return f"too many connections from one address; at most {self.limits.connections_per_client} at once"
        everyone = (one for clients in self._of_client.values() for one in clients)
        if self._inside >= self.most and not self._make_room(everyone):
            return "too many connections; try again in a moment"
        # Room may have been made of the client's last connection, and its set with it.
        self._of_client[newcomer.client_key].add(newcomer)
        self._inside += 1
        return ""

    def leave(self, connection: LimitedConnection) -> None:
        """Give its place back; nothing happens to one that has none."""
        own = self._of_client.get(connection.client_key, set())
        if connection in own:
            own.remove(connection)
            self._inside -= 1
        if not own:
            self._of_client.pop(connection.client_key, None)

    def crowded(self) -> bool:
        """Whether so many refused connections are still open that another cannot be told why."""
        return len(self.connections) - self._inside > _REFUSED_AT_ONCE

    def look(self, now: float) -> None:
        """Hang up on every client that has let its time pass.

        Args:
            now: Seconds on the clock of the event loop.
        """
        for connection in list(self.connections):
            cast(LimitedConnection, connection).look(now)

    def cut_off(self) -> None:
        """Close every connection as it is."""
        for connection in list(self.connections):
            cast(LimitedConnection, connection).transport.abort()

    def _make_room(self, among: Iterable[LimitedConnection]) -> bool:
        waiting = [connection for connection in among if connection.makes_room]
        if not waiting:
            return False
        # One client with many connections must not drive out those that have few.
        chosen = min(waiting, key=lambda one: (-len(self._of_client[one.client_key]), one.since))
        chosen.transport.abort()
        self.leave(chosen)
        return True


class _StrictParser(h11.Connection):
    """h11's reader of requests, which also refuses what another server in the way may read otherwise.

    RFC 9112, section 6.1: a request with both ``Transfer-Encoding`` and ``Content-Length`` may be an attempt to smuggle
    another one past a proxy, and so may one of HTTP/1.0 with a ``Transfer-Encoding``. Either may be refused, and the
    connection must be closed after it. h11 would read on behind it. It also takes every version for HTTP/1.1.
    """

    def next_event(self) -> Any:
        """As h11 gives it.

        Raises:
            RemoteProtocolError: If the request makes no sense, or could be understood in two ways.
        """
        event = super().next_event()
        if isinstance(event, h11.Request):
            names = [name for name, _ in event.headers]
            if b"transfer-encoding" in names and (b"content-length" in names or event.http_version < b"1.1"):
                raise h11.RemoteProtocolError("two ways to tell where the request ends")
            if not event.http_version.startswith(b"1."):
                raise h11.RemoteProtocolError("another version of HTTP")
        return event


class LimitedConnection(H11Protocol):
    """uvicorn's connection, with an eye on the clock and on the others.

    Attributes:
        table: Where it is counted.
        client_key: Whose it is; see :func:`rungwise.serving.limits.client_key`.
        turn: Whom it waits for.
        since: Since when, in seconds on the clock of the event loop.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        assert isinstance(server_state, Connections)
        self.conn = _StrictParser(h11.SERVER, server_state.limits.header_bytes)
        self.table = server_state
        self.client_key = ""
        self.turn = Turn.HEAD
        self.since = self.loop.time()
        self._unsent_since: float | None = None
        self._hung_up = False

    @property
    def makes_room(self) -> bool:
        """Whether nothing would be lost with it but the connection itself."""
        waits = self.turn is Turn.IDLE or (self.turn is Turn.HEAD and self.loop.time() - self.since > FRESH_SECONDS)
        return waits and self.transport.get_write_buffer_size() == 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a place, or say that there is none."""
        super().connection_made(transport)
        self.transport = cast(asyncio.Transport, _Parting(transport, self))
        self.client_key = client_key(self.client[0] if self.client else "")
        if reason := self.table.refusal(self):
            if self.table.crowded():
                transport.abort()
            else:
                self.refuse(HTTPStatus.SERVICE_UNAVAILABLE, reason)

    def connection_lost(self, exc: Exception | None) -> None:
        """Give back the place and what was read of a request that nobody waits for any more."""
        self.table.leave(self)
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        if self.cycle is not None:
            self.cycle.body = bytearray()

    def data_received(self, data: bytes) -> None:
        """Read in pieces: the parser limits what it keeps of a head, but not what it is handed at once."""
        piece = self.table.limits.header_bytes
        for start in range(0, len(data), piece):
            if self._hung_up:
                return
            super().data_received(data[start : start + piece])
        self._note()

    def on_response_complete(self) -> None:
        """Have the table count the idle seconds; uvicorn's clock would stop at the first byte that comes."""
        super().on_response_complete()
        self._unset_keepalive_if_required()
        self._note()

    def resume_writing(self) -> None:
        """The client has read: its time begins anew."""
        super().resume_writing()
        self._unsent_since = None

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP as everything else is refused, if it can still be answered."""
        if len(self.conn.trailing_data[0]) > self.table.limits.header_bytes:
            self.refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the head of the request is too large")
        else:
            self.refuse(HTTPStatus.BAD_REQUEST, "this is no HTTP request")

    def shutdown(self) -> None:
        """Let a request that has begun be answered; close the others."""
        self._note()
        if self.turn in (Turn.BODY, Turn.ANSWER):
            self.cycle.keep_alive = False
        else:
            self.transport.close()

    def look(self, now: float) -> None:
        """Hang up if the client has let its time pass.

        Args:
            now: Seconds on the clock of the event loop.
        """
        self._note()
        limits, waited = self.table.limits, now - self.since
        if self.transport.get_write_buffer_size() > 0:
            if self._unsent_since is None:
                self._unsent_since = now
            elif now - self._unsent_since > limits.send_seconds:
                self.transport.abort()
            return
        self._unsent_since = None
        if self.turn is Turn.HEAD and waited > limits.header_seconds:
            if self.conn.trailing_data[0]:
                self.refuse(HTTPStatus.REQUEST_TIMEOUT, "the head of the request took too long")
            else:
                self.transport.close()
        elif self.turn is Turn.IDLE and waited > limits.idle_seconds:
            self.transport.close()
        elif self.turn is Turn.BODY:
            if self.flow.read_paused or self.cycle.waiting_for_100_continue:
                self.since = now  # the server has not asked for more yet
            elif waited > limits.body_seconds:
                self.refuse(HTTPStatus.REQUEST_TIMEOUT, "the body of the request took too long")
        elif self.turn is Turn.REST and waited > LINGER_SECONDS:
            self.transport.abort()

    def refuse(self, status: HTTPStatus, reason: str) -> None:
        """Say why in one line, unless an answer has begun, and hang up."""
        self.table.leave(self)
        answering = self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete
        if not answering and self.turn is not Turn.REST:
            body = json.dumps({"error": reason}).encode()
            head = (
                f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-type: application/json\r\n"
                f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
            )
            self.transport.write(head.encode() + body)
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.hang_up()

    def hang_up(self) -> None:
        """Send nothing more, and read what the client still sends for a moment, so that it can read its answer."""
        self._hung_up = True
        self.transport.resume_reading()
        with contextlib.suppress(OSError):  # the client has gone already
            self.transport.write_eof()
        self._note()

    @property
    def still_sends(self) -> bool:
        """Whether more is to come of a request that was answered."""
        return self.conn.their_state is h11.SEND_BODY and not self._hung_up

    def _turn(self) -> Turn:
        if self._hung_up or self.transport.is_closing():
            return Turn.REST
        answered = self.cycle is None or self.cycle.response_complete
        if self.conn.their_state is h11.SEND_BODY:
            return Turn.REST if answered else Turn.BODY
        if not answered:
            return Turn.ANSWER
        return Turn.HEAD if self.cycle is None or self.conn.trailing_data[0] else Turn.IDLE

    def _note(self) -> None:
        turn = self._turn()
        if turn is not self.turn:
            self.turn, self.since = turn, self.loop.time()


class _Parting:
    """A transport as uvicorn sees it: it writes the head and the body of an answer at once, and closes in good order.

    After the last answer the connection is closed whether or not the client has done. What an application still says
    to a client that was hung up on goes nowhere, such as "100 Continue" where the body turned out to be no HTTP: a
    transport of asyncio raises an error for it.
    """

    def __init__(self, transport: asyncio.Transport, connection: LimitedConnection) -> None:
        self._transport = transport
        # Not a reference, which would be a circle and keep a connection until it is looked for.
        self._connection = weakref.ref(connection)
        self._loop = connection.loop
        self._held: list[bytes] = []
        self._ended = False

    def write(self, data: bytes) -> None:
        if self._ended or self._transport.is_closing():
            return
        # Every write that reaches the system costs a call, and a wait for Python's lock after it.
        self._held.append(data)
        if len(self._held) == 1:
            self._loop.call_soon(self._flush)

    def write_eof(self) -> None:
        self._flush()
        self._ended = True
        self._transport.write_eof()

    def abort(self) -> None:
        self._held.clear()
        self._transport.abort()

    def get_write_buffer_size(self) -> int:
        return self._transport.get_write_buffer_size() + sum(map(len, self._held))

    def close(self) -> None:
        self._flush()
        connection = self._connection()
        if connection is not None and connection.still_sends:
            connection.hang_up()
        else:
            self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def _flush(self) -> None:
        if self._held:
            data = self._held[0] if len(self._held) == 1 else b"".join(self._held)
            self._held.clear()
            self._transport.write(data)


def ignoring_disconnects(app: ASGIApp) -> ASGIApp:
    """An application for which it is no failure that a client left, or that the server stops.

    Without it either ends in a traceback, because what was waiting for the client is interrupted.

    >>> import asyncio
    >>> async def reading(scope, receive, send):
    ...     raise ClientDisconnect
    >>> asyncio.run(ignoring_disconnects(reading)({}, None, None))
    """

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await app(scope, receive, send)
        except (ClientDisconnect, asyncio.CancelledError):
            return

    return answer


def _most_files() -> int:
    """How many files this process may open; no limit where the system does not tell."""
    unlimited = 2**31
    if importlib.util.find_spec("resource") is None:  # Windows
        return unlimited
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return unlimited if soft == resource.RLIM_INFINITY else soft
