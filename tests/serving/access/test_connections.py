"""Every connection here is on a wire in memory, and the clock stands still: no test waits."""

import asyncio
import json
import weakref
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest
import uvicorn
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from rungwise.serving import ServingLimits
from rungwise.serving.access import BACKLOG, Connections, LimitedConnection, ignoring_disconnects
from rungwise.serving.access._connections import FRESH_SECONDS, LINGER_SECONDS, Turn
from tests.serving.loops import run

GET = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 10\r\n\r\n"
CHUNKED = b"POST / HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n"


class Wire(asyncio.Transport):
    """The server's end of a connection."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self.socket = SimpleNamespace(getpeername=lambda: (address, 40000), getsockname=lambda: ("127.0.0.1", 80))
        self.written = b""
        self.unsent = 0
        self.ended = self.closed = self.aborted = self.paused = self.gone = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self.socket if name == "socket" else default

    def write(self, data: bytes) -> None:
        assert not self.ended, "written after the end"
        self.written += data

    def write_eof(self) -> None:
        self.ended = True
        if self.gone:
            raise OSError("not connected")

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = self.aborted = True

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False

    @property
    def statuses(self) -> list[int]:
        return [int(part[:3]) for part in self.written.split(b"HTTP/1.1 ")[1:]]

    @property
    def error(self) -> str:
        head, _, body = self.written.rpartition(b"\r\n\r\n")
        assert b"connection: close" in head
        message = json.loads(body)["error"]
        assert "\n" not in message
        return message


class World:
    """A server without sockets.

    Attributes:
        answering: Set when the application may answer.
        reads: Whether it waits for the body of a request.
        pauses: Whether it begins an answer before it may give it.
        bodies: What it read of each request, or None where the client left.
    """

    def __init__(self, **limits: Any) -> None:
        self.limits = ServingLimits(**limits)
        self.table = Connections(self.limits)
        self.config = uvicorn.Config(
            ignoring_disconnects(self.answer), lifespan="off", ws="none", log_config=None, access_log=False
        )
        self.config.h11_max_incomplete_event_size = self.limits.header_bytes
        self.config.load()
        self.answering = asyncio.Event()
        self.answering.set()
        self.reads = True
        self.pauses = False
        self.bodies: list[bytes | None] = []

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            body = await Request(scope, receive).body() if self.reads else b""
        except ClientDisconnect:
            self.bodies.append(None)
            raise
        self.bodies.append(body)
        if self.pauses:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await self.answering.wait()
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            return
        await self.answering.wait()
        await PlainTextResponse("here you are")(scope, receive, send)

    def connect(self, address: str = "192.0.2.1") -> LimitedConnection:
        connection = LimitedConnection(self.config, self.table, {})
        connection.wire = Wire(address)
        connection.connection_made(connection.wire)
        return connection

    async def send(self, connection: LimitedConnection, data: bytes) -> None:
        connection.data_received(data)
        for _ in range(10):
            await asyncio.sleep(0)

    async def idle(self, address: str = "192.0.2.1") -> LimitedConnection:
        connection = self.connect(address)
        await self.send(connection, GET)
        assert connection.turn is Turn.IDLE
        return connection

    async def end(self) -> None:
        """Let everything that waits come to its end."""
        self.answering.set()
        for connection in list(self.table.connections):
            connection.connection_lost(None)
        for _ in range(10):
            await asyncio.sleep(0)
        assert not self.table.tasks
        assert len(self.table) == 0


def in_world(**limits: Any) -> Callable[[Callable[[World], Awaitable[None]]], Callable[[], None]]:
    """A test that runs in a world with these limits, in which no task fails."""

    def decorate(test: Callable[[World], Awaitable[None]]) -> Callable[[], None]:
        async def whole() -> None:
            failures: list[object] = []
            asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
            world = World(**limits)
            await test(world)
            await world.end()
            assert not failures

        def in_still_world() -> None:
            run(whole())

        in_still_world.__name__ = test.__name__
        return in_still_world

    return decorate


def passed(connection: LimitedConnection, seconds: float) -> LimitedConnection:
    """Look at a connection as if ``seconds`` had passed since its turn began."""
    connection.look(connection.since + seconds)
    return connection


@in_world(connections_per_client=2)
async def test_a_client_has_so_many_places_and_gets_them_back(world: World) -> None:
    world.answering.clear()
    busy = [world.connect(), world.connect()]
    for connection in busy:
        await world.send(connection, GET)
    refused = world.connect()
    assert refused.wire.statuses == [503]
    assert "2 at once" in refused.wire.error
    assert world.connect("192.0.2.2").wire.written == b""
    busy[0].connection_lost(None)
    assert world.connect().wire.written == b""
    assert len(world.table) == 3


@in_world(connections_per_client=1)
async def test_clients_of_one_ipv6_network_are_one(world: World) -> None:
    world.connect("2001:db8::1")
    assert world.connect("2001:db8::2").wire.statuses == [503]
    assert world.connect("2001:db8:0:1::1").wire.written == b""


@in_world(connections_per_client=2)
async def test_the_connection_that_was_idle_longest_makes_room(world: World) -> None:
    first, second = await world.idle(), await world.idle()
    second.since = first.since - 1
    third = world.connect()
    assert (first.wire.closed, second.wire.closed) == (False, True)
    assert third.wire.written == b""
    assert len(world.table) == 2


@in_world(connections=3)
async def test_the_client_with_most_connections_makes_room(world: World) -> None:
    modest = await world.idle("192.0.2.9")
    greedy = [await world.idle(), await world.idle()]
    greedy[0].since -= 1
    modest.since = greedy[0].since - 1
    assert world.connect("192.0.2.5").wire.written == b""
    assert not modest.wire.closed
    assert [one.wire.closed for one in greedy] == [True, False]


@in_world(connections=1)
async def test_neither_an_answer_nor_a_newcomer_makes_room(world: World) -> None:
    world.answering.clear()
    connection = world.connect()
    assert world.connect().wire.statuses == [503]  # nothing has come from the first yet
    connection.since -= FRESH_SECONDS + 1
    await world.send(connection, GET)
    refused = world.connect()
    assert refused.wire.statuses == [503]
    assert "try again" in refused.wire.error
    world.answering.set()
    await world.send(refused, GET)
    assert connection.wire.statuses == [200]


@in_world(connections=1)
async def test_a_connection_whose_answer_is_not_taken_yet_makes_no_room(world: World) -> None:
    slow = await world.idle()
    slow.wire.unsent = 10
    assert world.connect().wire.statuses == [503]
    slow.wire.unsent = 0
    assert world.connect().wire.statuses == []
    assert slow.wire.aborted


@in_world(connections=1)
async def test_a_connection_that_has_long_said_nothing_makes_room(world: World) -> None:
    silent = world.connect()
    silent.since -= FRESH_SECONDS + 1
    await world.idle()
    assert silent.wire.aborted


@in_world(connections=1)
async def test_many_who_are_refused_are_not_told_why(world: World) -> None:
    world.connect()
    refused = [world.connect() for _ in range(200)]
    told = [one.wire.statuses == [503] for one in refused]
    assert any(told)
    assert not all(told)
    assert all(one.wire.aborted or said for one, said in zip(refused, told, strict=True))


def test_fewer_places_where_the_system_opens_few_files(monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (BACKLOG + 364, 4096))
    assert Connections(ServingLimits(connections=1000)).most == 150
    assert Connections(ServingLimits(connections=100)).most == 100
    monkeypatch.setattr(resource, "getrlimit", lambda _: (10, 10))
    assert Connections(ServingLimits()).most == 1
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert Connections(ServingLimits(connections=1000)).most == 1000


@in_world(header_seconds=10)
async def test_a_head_that_drips_in_is_not_waited_for(world: World) -> None:
    connection = world.connect()
    begun = connection.since
    for letter in GET[:-1].decode():
        await world.send(connection, letter.encode())
    assert connection.since == begun
    assert not passed(connection, 9.9).wire.written
    assert passed(connection, 10.1).wire.statuses == [408]
    assert "took too long" in connection.wire.error
    assert connection.wire.ended
    assert len(world.table) == 0
    await world.send(connection, GET)  # too late
    assert connection.wire.statuses == [408]


@in_world(header_seconds=10)
async def test_silence_is_closed_without_a_word(world: World) -> None:
    connection = passed(world.connect(), 9.9)
    assert not connection.wire.closed
    assert passed(connection, 10.1).wire.closed
    assert not connection.wire.written


@in_world(header_seconds=10, idle_seconds=30)
async def test_an_idle_connection_is_closed_and_one_that_speaks_again_has_the_time_of_a_head(world: World) -> None:
    connection = await world.idle()
    assert connection.timeout_keep_alive_task is None  # uvicorn's own clock
    assert not passed(connection, 29).wire.closed
    await world.send(connection, GET[:5])
    assert connection.turn is Turn.HEAD
    assert not passed(connection, 9).wire.closed
    await world.send(connection, GET[5:])
    assert connection.wire.statuses == [200, 200]
    assert passed(connection, 31).wire.closed


@in_world(body_seconds=10)
async def test_a_body_that_drips_in_is_not_waited_for(world: World) -> None:
    connection = world.connect()
    await world.send(connection, POST)
    begun = connection.since
    for _ in range(9):
        await world.send(connection, b"x")
    assert connection.since == begun
    assert not passed(connection, 9.9).wire.written
    assert passed(connection, 10.1).wire.statuses == [408]
    await world.send(connection, b"x")
    assert connection.wire.statuses == [408]
    assert world.bodies == [None]  # the application was told


@in_world(body_seconds=10)
async def test_a_client_is_not_to_blame_for_what_it_was_not_asked_for(world: World) -> None:
    world.reads = False
    world.answering.clear()
    waiting = world.connect()
    await world.send(waiting, POST.replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n"))
    full = world.connect()
    await world.send(full, POST.replace(b"10", b"1000000") + bytes(100_000))
    assert full.wire.paused
    for connection in (waiting, full):
        assert connection.turn is Turn.BODY
        assert not passed(connection, 60).wire.written


@in_world(send_seconds=10)
async def test_a_client_that_does_not_read_is_left(world: World) -> None:
    connection = await world.idle()
    connection.wire.unsent = 70_000
    connection.pause_writing()
    connection.look(100.0)
    connection.look(109.0)
    assert not connection.wire.aborted
    connection.resume_writing()  # it reads, if slowly
    connection.look(109.5)
    connection.look(119.0)
    assert not connection.wire.aborted
    connection.look(120.0)
    assert connection.wire.aborted


@in_world(send_seconds=10)
async def test_the_end_of_an_answer_that_is_not_taken_holds_nothing_either(world: World) -> None:
    connection = await world.idle()
    connection.wire.unsent = 10
    connection.wire.close()
    connection.look(100.0)
    connection.look(111.0)
    assert connection.wire.aborted


@in_world()
async def test_an_answer_that_waits_for_no_body_is_read_to_the_end_for_a_moment(world: World) -> None:
    world.reads = False
    connection = world.connect()
    await world.send(connection, POST)
    assert connection.wire.statuses == [200]
    await world.send(connection, b"0123456789")
    assert connection.turn is Turn.IDLE
    await world.send(connection, POST)
    assert connection.wire.statuses == [200, 200]
    assert not passed(connection, LINGER_SECONDS / 2).wire.closed
    assert passed(connection, LINGER_SECONDS + 0.1).wire.aborted


@in_world()
async def test_a_last_answer_that_waits_for_no_body_can_be_read(world: World) -> None:
    world.reads = False
    connection = world.connect()
    await world.send(connection, POST.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
    assert connection.wire.statuses == [200]
    # Closed now, it would be reset by what the client sends, and the answer lost.
    assert (connection.wire.ended, connection.wire.closed) == (True, False)
    await world.send(connection, b"0123456789")
    assert passed(connection, LINGER_SECONDS + 0.1).wire.aborted


@in_world()
async def test_the_refused_are_hung_up_on_after_a_moment(world: World) -> None:
    connection = world.connect()
    await world.send(connection, b"what is this\r\n\r\n")
    assert connection.wire.statuses == [400]
    assert not passed(connection, LINGER_SECONDS / 2).wire.aborted
    assert passed(connection, LINGER_SECONDS + 0.1).wire.aborted


@in_world()
async def test_who_is_refused_may_have_gone_already(world: World) -> None:
    connection = world.connect()
    connection.wire.gone = True
    await world.send(connection, b"what is this\r\n\r\n")
    assert connection.wire.ended


@pytest.mark.parametrize("at_once", [True, False])
def test_a_head_has_a_size(at_once: bool) -> None:
    @in_world(header_bytes=1000)
    async def test(world: World) -> None:
        connection = world.connect()
        head = GET[:-2] + b"".join(b"X-%d: %s\r\n" % (n, bytes(100).hex().encode()) for n in range(40)) + b"\r\n"
        for piece in [head] if at_once else [head[start : start + 50] for start in range(0, len(head), 50)]:
            await world.send(connection, piece)
        assert connection.wire.statuses == [431]
        assert "too large" in connection.wire.error

    test()


@in_world()
async def test_a_chunk_that_is_none_ends_the_request(world: World) -> None:
    connection = world.connect()
    await world.send(connection, CHUNKED + b"3\r\nabc\r\nno number\r\n")
    assert connection.wire.statuses == [400]
    assert world.bodies == [None]


@in_world()
async def test_nothing_is_said_to_a_client_that_was_hung_up_on(world: World) -> None:
    """The application asks for a body whose first chunk was refused: "100 Continue" comes too late."""
    connection = world.connect()
    await world.send(connection, CHUNKED.replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n") + b"no number\r\n")
    assert connection.wire.statuses == [400]
    assert world.bodies == [None]


@pytest.mark.parametrize(
    ("version", "headers"),
    [
        ("1.1", "Content-Length: 5\r\nTransfer-Encoding: chunked"),
        ("1.1", "Transfer-Encoding: chunked\r\nContent-Length: 5"),
        ("1.0", "Transfer-Encoding: chunked"),
        ("2.0", "Content-Length: 0"),
        ("1.1", "Content-Length: 5\r\nContent-Length: 6"),
        ("1.1", "Content-Length: 5, 6"),
        ("1.1", "Transfer-Encoding : chunked"),
        ("1.1", "Transfer-Encoding: gzip, chunked"),
        ("1.1", "X: a\0b"),
        ("1.1", "X: a\rContent-Length: 5"),
        ("1.1", "Host: here"),
    ],
)
def test_a_request_that_could_be_read_in_two_ways_ends_the_connection(version: str, headers: str) -> None:
    @in_world()
    async def test(world: World) -> None:
        connection = world.connect()
        head = f"POST / HTTP/{version}\r\nHost: here\r\n{headers}\r\n\r\n".encode()
        await world.send(connection, head + b"0\r\n\r\n" + GET)
        assert connection.wire.statuses == [400]
        assert connection.wire.ended
        assert not world.bodies

    test()


@pytest.mark.parametrize("leaving", ["says that nothing follows", "has gone"])
@pytest.mark.parametrize("reads", [True, False])
@pytest.mark.parametrize(
    "request_",
    [GET, POST + b"0123456789", CHUNKED + b"3\r\nabc\r\n0\r\n\r\n", GET * 2, POST + b"0123456789no HTTP\r\n\r\n"],
)
@pytest.mark.parametrize("expecting", [b"", b"Expect: 100-continue\r\n", b"Connection: close\r\n"])
def test_who_leaves_at_any_byte_leaves_no_failure(request_: bytes, expecting: bytes, reads: bool, leaving: str) -> None:
    @in_world()
    async def test(world: World) -> None:
        world.reads = reads
        whole = request_.replace(b"Host: here\r\n", b"Host: here\r\n" + expecting)
        for at in range(0, len(whole) + 1, 5):
            connection = world.connect()
            connection.data_received(whole[:at])
            for _ in range(at % 4):
                await asyncio.sleep(0)
            if leaving == "has gone":
                connection.connection_lost(ConnectionResetError())
            else:
                connection.eof_received()
                connection.wire.close()  # as the event loop does then
                await asyncio.sleep(0)
                connection.connection_lost(None)
            for _ in range(10):
                await asyncio.sleep(0)

    test()


@in_world()
async def test_a_chunk_that_is_none_after_the_answer_ends_the_connection(world: World) -> None:
    world.reads = False
    connection = world.connect()
    await world.send(connection, CHUNKED)
    assert connection.wire.statuses == [200]
    await world.send(connection, b"no number\r\n")
    assert connection.wire.ended
    assert connection.wire.statuses == [200]
    assert passed(connection, LINGER_SECONDS + 0.1).wire.aborted


@in_world()
async def test_nothing_is_written_into_an_answer_that_has_begun(world: World) -> None:
    world.reads = False
    world.pauses = True
    world.answering.clear()
    connection = world.connect()
    await world.send(connection, CHUNKED)
    assert connection.wire.statuses == [200]
    await world.send(connection, b"no number\r\n")
    assert connection.wire.statuses == [200]
    assert connection.wire.ended


@in_world()
async def test_requests_that_come_together_are_answered_one_after_the_other(world: World) -> None:
    connection = world.connect()
    await world.send(connection, GET * 5 + GET[:7])
    for _ in range(50):
        await asyncio.sleep(0)
    assert connection.wire.statuses == [200] * 5
    assert connection.turn is Turn.HEAD


@in_world()
async def test_nothing_is_kept_of_a_client_that_left(world: World) -> None:
    world.reads = False
    world.answering.clear()
    connection = world.connect()
    await world.send(connection, POST.replace(b"10", b"90000") + bytes(60_000))
    assert len(connection.cycle.body) == 60_000
    connection.connection_lost(ConnectionResetError())
    assert not connection.cycle.body
    left = weakref.ref(connection)
    world.answering.set()
    del connection
    for _ in range(100):  # until the answer that nobody waits for is given
        await asyncio.sleep(0)
    assert left() is None, "what was sent is kept"


@in_world()
async def test_who_leaves_while_sending_is_no_failure(world: World) -> None:
    connection = world.connect()
    await world.send(connection, POST + b"012")
    connection.connection_lost(None)
    await asyncio.sleep(0)
    assert world.bodies == [None]


@in_world()
async def test_stopping_lets_what_has_begun_be_answered(world: World) -> None:
    world.answering.clear()
    asked, sending, idle, silent, refused = (world.connect() for _ in range(5))
    await world.send(asked, GET)
    await world.send(sending, POST + b"01234")
    await world.send(refused, b"what is this\r\n\r\n")
    world.answering.set()
    await world.send(idle, GET)
    world.table.stopping = True
    for connection in (asked, sending, idle, silent, refused):
        connection.shutdown()
    assert [one.wire.closed for one in (sending, idle, silent, refused)] == [False, True, True, True]
    await world.send(sending, b"56789")
    assert [one.wire.statuses for one in (asked, sending)] == [[200], [200]]
    assert asked.wire.closed
    assert sending.wire.closed
    assert "stopping" in world.connect().wire.error
    world.table.cut_off()
    assert all(connection.wire.aborted for connection in world.table.connections)


def test_a_failure_of_the_application_is_not_hidden() -> None:
    async def failing(scope: Scope, receive: Receive, send: Send) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asyncio.run(ignoring_disconnects(failing)({}, None, None))
