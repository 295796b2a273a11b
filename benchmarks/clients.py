"""Those who ask the server in ``serving.py``: visitors who search, and strangers who want to hurt it.

They speak HTTP/1.1 over plain sockets, so that fifty of them cost less than the server that answers.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import re
import socket
import struct
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import quote

PATIENCE = 60.0
"""Seconds after which a visitor takes an answer for lost."""

THUMBNAIL = 256
SLOW_HEADS, SLOW_BODIES, SLOW_READERS = 100, 60, 40
IDLE = 250
SEARCH = "/search?k=24&q="
"""The address of a search, before the text."""
SLOW, LOUD = "127.0.0.2", "127.0.0.3"
"""Addresses of this machine from which strangers come. Linux has them all; elsewhere they must be given to it first."""
BOMBS = 12
ABORTED_UPLOADS = 4
SLOW_TEXTS = 8
ODD_REQUESTS = 8
HALF_CLOSED = 8
MISSPELT = 4
ODD = 400
"""Requests that no client should send, drawn from a seed and sent over and over."""
TEXTS = (
    *(f"a without b{' ' * 1950}", "“ " * 950, "no , " * 390, "a not " * 320, '"' * 1900, "- + " * 480, "(" * 1900),
    *("a" * 1990, "not a , and no b or " * 95, "2 * " * 480, '\\"' * 900, "\u0301" * 900),
)
"""Queries of nearly 2,000 characters, each a repetition at which some reader of texts was slow."""
FILTERS = ("year == 1 and " * 140, "(" * 1900, "'" * 1900, "not " * 480, "x" * 1990, "a in (" + "1, " * 600)
MISSPELT_TARGETS = (
    "/search?query=a",
    "/search?q=a&kk=3",
    "/similar?idd=1",
    "/search?q=a&q=b",
    "/about?x=1",
    "/items/x?y=1",
)
"""Each is refused."""
ANNOUNCED = 5_000_000
"""Bytes of an upload of which less than half is sent."""


class Asked(NamedTuple):
    """One request of a visitor."""

    second: float
    kind: str
    latency: float
    outcome: str


@dataclass
class Harm:
    """What strangers did, and how long each of their connections was held."""

    counts: Counter[str] = field(default_factory=Counter)
    longest: dict[str, float] = field(default_factory=dict)

    def held(self, kind: str, seconds: float) -> None:
        """Note how long a connection was open."""
        self.longest[kind] = max(seconds, self.longest.get(kind, 0.0))


class Odd(NamedTuple):
    """What a client sends that should not, and how it leaves: ``"waits"``, ``"closes"``, ``"resets"`` or ``"ends"``."""

    pieces: tuple[bytes, ...]
    leaving: str


class Connection:
    """A connection that is kept until either side closes it."""

    def __init__(self, port: int, source: str = "127.0.0.1") -> None:
        self.port, self.source = port, source
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open it, if it is not, or if the server has closed it while nothing was asked."""
        if self._streams is None or self._streams[0].at_eof():
            self._streams = await asyncio.open_connection("127.0.0.1", self.port, local_addr=(self.source, 0))
        return self._streams

    async def ask(self, target: str, body: bytes = b"") -> tuple[int, bytes]:
        """Send a request; gives the status and the content of its answer."""
        reader, writer = await self.open()
        head = f"{'POST' if body else 'GET'} {target} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n"
        if body:
            head += f"Content-Length: {len(body)}\r\n"
        writer.write(head.encode() + b"\r\n" + body)
        answer = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        length = int(answer.partition("content-length:")[2].partition("\r\n")[0] or 0)
        content = await reader.readexactly(length)
        if "connection: close" in answer:
            self.close()
        return int(answer.split(" ", 2)[1]), content

    def close(self, *, reset: bool = False) -> None:
        """Close it, in good order or by a reset."""
        if self._streams is None:
            return
        writer = self._streams[1]
        if reset:
            linger = struct.pack("ii", 1, 0)
            with contextlib.suppress(OSError):  # closed already
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            writer.transport.abort()
        else:
            writer.close()
        self._streams = None


def visit(
    port: int,
    clients: int,
    seconds: float,
    queries: Sequence[str],
    *,
    think: float = 0.0,
    pictures: int = 0,
    but: Collection[str] = (),
    search: str = SEARCH,
    own_addresses: bool = False,
) -> list[Asked]:
    """Search and look at the first pictures found, each client by itself.

    Args:
        port: Of the server, on this machine.
        clients: How many.
        seconds: For how long.
        queries: Texts, of which each is drawn.
        think: Seconds on average from what was found to the next query.
        pictures: How many of the pictures found are looked at.
        but: Ids of pictures that are not looked at.
        search: The address of a search, before the text.
        own_addresses: Each visitor has an address of its own, as strangers have; the server is fair by address.
    """
    return asyncio.run(_visit(port, clients, seconds, queries, think, pictures, but, search, own_addresses))


async def _visit(
    port: int,
    clients: int,
    seconds: float,
    queries: Sequence[str],
    think: float,
    pictures: int,
    but: Collection[str],
    search: str,
    own_addresses: bool,
) -> list[Asked]:
    start = time.monotonic()
    asked: list[Asked] = []

    async def one(number: int) -> None:
        draw = random.Random(number)
        connection = Connection(port, f"127.0.1.{number + 1}" if own_addresses else "127.0.0.1")

        async def timed(kind: str, target: str) -> bytes:
            begin = time.monotonic()
            try:
                status, content = await asyncio.wait_for(connection.ask(target), PATIENCE)
                outcome = "" if status == 200 else str(status)
            except (OSError, EOFError, TimeoutError) as error:
                content, outcome = b"", type(error).__name__
                connection.close()
            asked.append(Asked(begin - start, kind, time.monotonic() - begin, outcome))
            return b"" if outcome else content

        await asyncio.sleep(draw.random() * think)
        while time.monotonic() - start < seconds:
            found = await timed("text", f"{search}{quote(draw.choice(queries))}")
            if pictures and found:
                ids = [hit["id"] for hit in json.loads(found)["hits"] if hit["id"] not in but]
                for item_id in ids[:pictures]:
                    await timed("thumbnail", f"/images/{quote(item_id, safe='')}?thumb={THUMBNAIL}")
            if think:
                await asyncio.sleep(draw.expovariate(1 / think))
        connection.close()

    await asyncio.gather(*(one(number) for number in range(clients)))
    return asked


def attack(
    port: int, seconds: float, uploads: Sequence[bytes], bombs: Sequence[str], large: str, odd: Sequence[Odd] = ()
) -> Harm:
    """Hurt the server in every way at once.

    Args:
        port: Of the server, on this machine.
        seconds: For how long.
        uploads: Pictures that are small as files and huge as pixels.
        bombs: Ids of such pictures in the index.
        large: Id of a picture whose file is larger than the buffers of the system.
        odd: Requests that no client should send.
    """
    return asyncio.run(_attack(port, seconds, uploads, bombs, large, odd))


async def _attack(
    port: int, seconds: float, uploads: Sequence[bytes], bombs: Sequence[str], large: str, odd: Sequence[Odd]
) -> Harm:
    start = time.monotonic()
    harm = Harm()

    async def again(kind: str, source: str, act: Callable[[Connection], Awaitable[None]]) -> None:
        while (left := seconds - (time.monotonic() - start)) > 0:
            connection = Connection(port, source)
            begin = time.monotonic()
            try:
                await connection.open()
                harm.counts[f"{kind}: connections"] += 1
                await asyncio.wait_for(act(connection), left)
            except TimeoutError:
                harm.counts[f"{kind}: open to the end"] += 1
            except (OSError, EOFError):
                harm.counts[f"{kind}: hung up on"] += 1
            if kind != "slow readers":  # they have the buffers of the system to read when the server has long gone
                harm.held(kind, time.monotonic() - begin)
            connection.close(reset=True)
            await asyncio.sleep(min(1.0, max(0.0, left)))

    async def drip(connection: Connection, first: bytes, drop: bytes) -> None:
        reader, writer = await connection.open()
        writer.write(first)
        while not reader.at_eof():
            writer.write(drop)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(reader.read(1 << 16), 1.0)
        raise EOFError

    async def slow_head(connection: Connection) -> None:
        await drip(connection, b"GET /about HTTP/1.1\r\nHost: 127.0.0.1\r\n", b"X-Slow: 1\r\n")

    async def slow_body(connection: Connection) -> None:
        head = b"POST /pictures HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000000\r\n\r\n"
        await drip(connection, head, b"x")

    async def slow_reader(connection: Connection) -> None:
        reader, writer = await connection.open()
        writer.write(f"GET /images/{large} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        while await reader.read(1000):
            await asyncio.sleep(1.0)
        raise EOFError

    async def idle(connection: Connection) -> None:
        await connection.ask("/about")
        reader, _ = await connection.open()
        await reader.readexactly(1)

    async def explode(connection: Connection) -> None:
        draw = random.Random(id(connection))
        while True:
            if draw.random() < 0.5:
                status, _ = await connection.ask("/pictures", draw.choice(uploads))
            else:
                status, _ = await connection.ask(f"/images/{draw.choice(bombs)}?thumb={draw.randint(16, 2048)}")
            harm.counts[f"bombs: answered {status}"] += 1
            await asyncio.sleep(0.1)

    async def give_up(connection: Connection) -> None:
        _, writer = await connection.open()
        head = f"POST /pictures HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {ANNOUNCED}\r\n\r\n"
        writer.write(head.encode() + uploads[0][:1000])
        for _ in range(20):
            writer.write(bytes(100_000))
            await writer.drain()
        connection.close(reset=True)

    draws: Iterator[random.Random] = map(random.Random, range(1 << 30))  # every connection draws anew

    async def ask_slowly(connection: Connection) -> None:
        draw = next(draws)
        while True:
            if draw.random() < 0.7:
                target = f"/search?q={quote(draw.choice(TEXTS)[:1900], safe='')}&k=3"
            else:
                target = f"/search?q=a&where={quote(draw.choice(FILTERS), safe='')}"
            status, _ = await connection.ask(target)
            harm.counts[f"slow texts: answered {status}"] += 1
            await asyncio.sleep(0.1)

    async def misspell(connection: Connection) -> None:
        draw = next(draws)
        while True:
            status, _ = await connection.ask(draw.choice(MISSPELT_TARGETS))
            harm.counts[f"misspelt: answered {status}"] += 1
            await asyncio.sleep(0.1)

    async def be_odd(connection: Connection) -> None:
        one = next(draws).choice(odd)
        reader, writer = await connection.open()
        for piece in one.pieces:
            writer.write(piece)
            await writer.drain()
        if one.leaving == "ends":
            writer.write_eof()
        answer = await reader.read() if one.leaving in ("waits", "ends") else b""
        for status in re.findall(rb"HTTP/1\.1 (\d{3})", answer):
            harm.counts[f"odd requests: answered {status.decode()}"] += 1

    async def close_half(connection: Connection) -> None:
        draw = next(draws)
        host = f"Host: 127.0.0.1:{port}\r\n"
        whole = draw.choice(
            (
                f"GET /search?q=a HTTP/1.1\r\n{host}\r\n",
                f"POST /pictures HTTP/1.1\r\n{host}Expect: 100-continue\r\nContent-Length: 9\r\n\r\nxxx",
                f"POST /pictures HTTP/1.1\r\n{host}Transfer-Encoding: chunked\r\n\r\n5\r\nxxxxx\r\nno",
            )
        ).encode()
        reader, writer = await connection.open()
        writer.write(whole[: draw.randint(1, len(whole))])
        await writer.drain()
        if draw.random() < 0.5:
            await asyncio.sleep(draw.random() * 0.05)
        writer.write_eof()
        await reader.read()

    acts = (
        ("slow heads", slow_head, SLOW_HEADS, SLOW),
        ("slow bodies", slow_body, SLOW_BODIES, SLOW),
        ("slow readers", slow_reader, SLOW_READERS, SLOW),
        ("idle", idle, IDLE, SLOW),
        ("bombs", explode, BOMBS, LOUD),
        ("aborted uploads", give_up, ABORTED_UPLOADS, LOUD),
        ("slow texts", ask_slowly, SLOW_TEXTS, LOUD),
        ("odd requests", be_odd, ODD_REQUESTS if odd else 0, LOUD),
        ("half-closed", close_half, HALF_CLOSED, LOUD),
        ("misspelt", misspell, MISSPELT, LOUD),
    )
    await asyncio.gather(*(again(kind, source, act) for kind, act, many, source in acts for _ in range(many)))
    return harm
