"""Limits of connections: their number, the time to send and to read, and nothing after that.

uvicorn reads requests and writes answers, but lets a client take any time for either, and anyone open as many
connections as the system gives. Here every connection knows what it waits for (:class:`Turn`); a table
(:class:`Connections`) counts connections by client, and regularly hangs up on clients that exceed their time. A request
about whose end two servers could disagree is refused (:class:`_StrictParser`).

When all places are taken, a connection that waits for a request makes room: one of the client with most of them, the
longest waiting first, as nginx reuses its idle ones. Where none waits, the newcomer is refused with status 503.
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

from rungwise.serving._limits import ServingLimits, client_key

BACKLOG = 128
"""Number of connections that the system queues for a busy server."""

LINGER_SECONDS = 2.0
"""Time for which a refused client may go on sending: closed at once, its connection would reset and lose the answer."""

FRESH_SECONDS = 1.0
"""Time for which a connection without data keeps its place: its request may have arrived unread."""

_OTHER_FILES = 64
_REFUSED_AT_ONCE = 64


class Turn(Enum):
    """What a connection waits for."""

    HEAD = auto()
    """It waits for the client: the head of its first request, or of another one that has begun."""
    BODY = auto()
    """It waits for the client: the body of a request."""
    ANSWER = auto()
    """It waits for the server."""
    IDLE = auto()
    """It waits for nothing: an answer was given, and no other request has begun."""
    REST = auto()
    """It was answered, and the client still sends or has to read the answer."""


class Connections(ServerState):
    """Table of the connections of one server, counted by client.

    Attributes:
        limits: Limits of the connections.
        most: Largest number of connections: that of the limits, or fewer where the system lets this process open fewer
            files. A connection may need two, its own and that of a picture.
        stopping: Whether newcomers are refused because the server is stopping.
    """

    def __init__(self, limits: ServingLimits) -> None:
        super().__init__()
        self.limits = limits
        self.stopping = False
        self.most = max(1, min(limits.connections, (_most_files() - BACKLOG - _OTHER_FILES) // 2))
        self._of_client: defaultdict[str, set[LimitedConnection]] = defaultdict(set)
        self._inside = 0

    def __len__(self) -> int:
        """Number of connections with a place; refused ones stay open a little longer, but have none."""
        return self._inside

    def refusal(self, newcomer: LimitedConnection) -> str:
        """Give a connection a place, making room if necessary; otherwise return the reason in one line."""
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
        """Give back the place of a connection, if it has one."""
        own = self._of_client.get(connection.client_key, set())
        if connection in own:
            own.remove(connection)
            self._inside -= 1
        if not own:
            self._of_client.pop(connection.client_key, None)

    def crowded(self) -> bool:
        """Whether too many refused connections are still open to tell another one why."""
        return len(self.connections) - self._inside > _REFUSED_AT_ONCE

    def look(self, now: float) -> None:
        """Hang up on every client that has exceeded its time; ``now`` is the event loop's clock."""
        for connection in list(self.connections):
            cast(LimitedConnection, connection).look(now)

    def cut_off(self) -> None:
        """Abort every connection."""
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
    """h11's reader of requests, which also refuses what another server on the way may read differently.

    RFC 9112, section 6.1: a request with both ``Transfer-Encoding`` and ``Content-Length`` may be an attempt to smuggle
    another one past a proxy, and so may one of HTTP/1.0 with a ``Transfer-Encoding``. Either may be refused, and the
    connection must be closed after it. h11 would read on behind it. It also takes every version for HTTP/1.1.
    """

    def next_event(self) -> Any:
        """The next event of h11; RemoteProtocolError for a request that is malformed or ambiguous."""
        event = super().next_event()
        if isinstance(event, h11.Request):
            names = [name for name, _ in event.headers]
            if b"transfer-encoding" in names and (b"content-length" in names or event.http_version < b"1.1"):
                raise h11.RemoteProtocolError("two ways to tell where the request ends")
            if not event.http_version.startswith(b"1."):
                raise h11.RemoteProtocolError("another version of HTTP")
        return event


class LimitedConnection(H11Protocol):
    """uvicorn's connection, with limits of time and of the number of connections.

    Attributes:
        table: Table that counts the connection.
        client_key: Client of the connection, from :func:`rungwise.serving._limits.client_key`.
        turn: What the connection waits for.
        since: Time on the event loop's clock since when it waits.
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
        """Whether closing the connection would lose nothing else."""
        waits = self.turn is Turn.IDLE or (self.turn is Turn.HEAD and self.loop.time() - self.since > FRESH_SECONDS)
        return waits and self.transport.get_write_buffer_size() == 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a place, or refuse the client."""
        super().connection_made(transport)
        self.transport = cast(asyncio.Transport, _Parting(transport, self))
        self.client_key = client_key(self.client[0] if self.client else "")
        if reason := self.table.refusal(self):
            if self.table.crowded():
                transport.abort()
            else:
                self.refuse(HTTPStatus.SERVICE_UNAVAILABLE, reason)

    def connection_lost(self, exc: Exception | None) -> None:
        """Give back the place, and the part of a request that nobody waits for any more."""
        self.table.leave(self)
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        if self.cycle is not None:
            self.cycle.body = bytearray()

    def data_received(self, data: bytes) -> None:
        """Read in pieces: the parser limits what it keeps of a head, but not what it is given at once."""
        piece = self.table.limits.header_bytes
        for start in range(0, len(data), piece):
            if self._hung_up:
                return
            super().data_received(data[start : start + piece])
        self._note()

    def on_response_complete(self) -> None:
        """Let the table count the idle seconds; uvicorn's clock would stop at the first byte of a request."""
        super().on_response_complete()
        self._unset_keepalive_if_required()
        self._note()

    def resume_writing(self) -> None:
        """Restart the time for reading the answer, since the client has read."""
        super().resume_writing()
        self._unsent_since = None

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP in the same form as everything else, if an answer is still possible."""
        if len(self.conn.trailing_data[0]) > self.table.limits.header_bytes:
            self.refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the head of the request is too large")
        else:
            self.refuse(HTTPStatus.BAD_REQUEST, "this is no HTTP request")

    def shutdown(self) -> None:
        """Close the connection, after the answer to a request that has begun."""
        self._note()
        if self.turn in (Turn.BODY, Turn.ANSWER):
            self.cycle.keep_alive = False
        else:
            self.transport.close()

    def look(self, now: float) -> None:
        """Hang up if the client has exceeded its time; ``now`` is the event loop's clock."""
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
        """Answer with the reason in one line, unless an answer has begun, and hang up."""
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
        """Send nothing more, and read for a moment what the client still sends, so that it can read its answer."""
        self._hung_up = True
        self.transport.resume_reading()
        with contextlib.suppress(OSError):  # the client has gone already
            self.transport.write_eof()
        self._note()

    @property
    def still_sends(self) -> bool:
        """Whether the client still sends a request that was answered."""
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
    """uvicorn's view of a transport: head and body of an answer are written at once, and it closes in order.

    After the last answer the connection is closed whether or not the client has finished. What an application still
    sends to a client that was hung up on is dropped, such as "100 Continue" where the body turned out to be no HTTP: a
    transport of asyncio would raise an error.
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
    """Wrap an application so that it is no failure if a client leaves or the server stops.

    Otherwise both end in a traceback, because waiting for the client is interrupted.
    """

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await app(scope, receive, send)
        except (ClientDisconnect, asyncio.CancelledError):
            return

    return answer


def _most_files() -> int:
    """Number of files that this process may open; very large where the system does not tell."""
    unlimited = 2**31
    if importlib.util.find_spec("resource") is None:  # Windows
        return unlimited
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return unlimited if soft == resource.RLIM_INFINITY else soft
