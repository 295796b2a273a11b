"""Requests that no client should send: drawn from a seed, each a list of bytes to send and a way to leave."""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

Leaving = Literal["waits", "closes", "resets", "ends"]


@dataclass(frozen=True)
class HostileRequest:
    """What a client does on one connection.

    Attributes:
        name: What is wrong with it.
        pieces: Sent one after the other.
        leaving: Whether the client then waits for the server to close, closes, resets, or says that nothing follows.
    """

    name: str
    pieces: tuple[bytes, ...]
    leaving: Leaving


METHODS = (
    *(b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"OPTIONS", b"TRACE", b"CONNECT", b"PATCH", b"get", b"", b"G\0T"),
    *(b"G" * 3000, "GÉT".encode(), b"GET ", b" GET", b"(GET)", b"GET\t", b"\x16\x03\x01", b"PRI"),
)
TARGETS = (
    *(
        b"/",
        b"/about",
        b"/search?q=red",
        b"/similar?id=0-red",
        b"/images/0-red",
        b"/openapi.json",
        b"*",
        b"",
        b"//",
    ),
    *(
        b"http://elsewhere.example/",
        b"http://[::1",
        b"/search?q=%ED%A0%80",
        b"/search?q=%00&k=1",
        b"/%zz",
        b"/%",
    ),
    *(b"/search?q=" + b"x" * 3000, b"/search?q=a&k=" + b"9" * 400, b"/search?k=-1", b"/search?k=1e3"),
    *(
        b"/search?q=a&q=b&k=1&k=2",
        b"/search?%FF=%FE",
        b"/search?&&&===",
        b"/search;q=red",
        b"/search#x",
    ),
    *(
        b"/similar?id=-1",
        b"/similar?id=" + b"9" * 300,
        b"/similar?id=0x1",
        b"/similar?id=%00",
        b"/similar?id=\xd9\xa1",
    ),
    *(
        b"/images/0-red?thumb=0",
        b"/images/0-red?thumb=-5",
        b"/images/0-red?thumb=" + b"9" * 50,
        b"/images/0-red?thumb=nan",
    ),
    *(
        b"/images/99999",
        b"/images/0-red/../../x",
        b"/static/",
        b"/static/%00",
        b"/static/" + b"a" * 5000,
        b"/static/%FF",
    ),
    *(
        b"/static/" + b"a/" * 2000,
        b"/ /",
        b"/\0",
        b"/\x7f",
        "/é".encode(),
        b"/" + bytes(range(128, 256)),
        b"x" * 200_000,
    ),
)
VERSIONS = (
    b"HTTP/1.1",
    b"HTTP/1.0",
    b"HTTP/0.9",
    b"HTTP/2.0",
    b"HTTP/9.9",
    b"http/1.1",
    b"",
    b"HTTP/1.1 x",
    b"HTTP/",
    b"\0",
)
LINE_ENDS = (b"\n", b"\r", b"\n\r", b"\r\r\n", b"\0", b"")
HOSTS = (
    *(
        b"",
        b"elsewhere.example",
        b"127.0.0.1:1:2",
        b"[::1",
        b"[::1]:x",
        b"127.0.0.1@elsewhere",
        b"\xff\xfe",
        b"a" * 9000,
    ),
    *(b"127.0.0.1, elsewhere", b"127.0.0.1:99999999", b" ", b"..", b"127.0.0.1\0", b"%31"),
)
HEADERS = (
    *(
        b"Content-Length: -1",
        b"Content-Length: 1e3",
        b"Content-Length: 5, 5",
        b"Content-Length: 5\r\nContent-Length: 6",
    ),
    *(
        b"Content-Length: " + b"9" * 30,
        b"Content-Length: +5",
        b"Content-Length: 0x5",
        b"Content-Length:",
        b"Content-Length: 5",
    ),
    *(b"Content-Length: 99999999999", b"Content-Length: \xd9\xa1", b"Content-Length: " + b"1" * 5000),
    *(b"Transfer-Encoding: gzip, chunked", b"Transfer-Encoding: chunked, chunked", b"Transfer-Encoding: xchunked"),
    *(b"Transfer-Encoding: chunked\r\nContent-Length: 5", b"Transfer-Encoding: \x0bchunked", b"Transfer-Encoding:"),
    *(
        b"Transfer-Encoding : chunked",
        b"No colon",
        b": empty",
        b"Nul\0: x",
        b"X: a\0b",
        b"X: \r\n folded",
        b" X: begins",
    ),
    *(
        "Ü: x".encode(),
        b"X: " + bytes(range(128, 256)),
        b"X: " + b"x" * 100_000,
        b"X: y\r\n" * 4000 + b"Z: z",
        b"X" * 20_000,
    ),
    *(
        b"Expect: 100-continue",
        b"Expect: the-worst",
        b"Connection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x",
    ),
    *(
        b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAA",
        b"Connection: \xff",
        b"Upgrade: x",
    ),
    *(
        b"Range: bytes=5-1",
        b"Range: bytes=" + b"0-1," * 3000 + b"2-3",
        b"Range: lines=1",
        b"Range: bytes=-" + b"9" * 40,
    ),
    *(
        b"Range: bytes=0-0,-0",
        b"If-None-Match: *",
        b"If-None-Match: \xff",
        b"If-Modified-Since: yesterday",
        b"If-Range: x",
    ),
    *(
        b"Origin: null",
        b"Origin: http://elsewhere.example",
        b"Origin: \xff",
        b"Sec-Fetch-Site: cross-site",
        b"Referer: \0",
    ),
    *(
        b"Authorization: Bearer \xff",
        b"Authorization: Basic ====",
        b"Cookie: a=b; =; ;;; \xff",
        b"Accept: " + b"*/*," * 2000,
    ),
    *(b"Content-Type: multipart/form-data", b"Content-Type: application/json; charset=\xff", b"Content-Encoding: gzip"),
    *(
        b"X-Forwarded-For: 1.2.3.4\r\nX-Forwarded-Proto: \xff",
        b"X-HTTP-Method-Override: DELETE",
        b"Trailer: Content-Length",
    ),
)
CHUNKS = (
    *(
        b"5\r\nhello\r\n0\r\n\r\n",
        b"g\r\n",
        b"-1\r\n",
        b"ffffffffffffffffffff\r\nx",
        b"5\r\nhello0\r\n\r\n",
        b"0\r\n",
        b"\r\n",
    ),
    *(
        b"5;" + b"e" * 20_000 + b"\r\nhello\r\n",
        b"0x5\r\nhello\r\n",
        b"5\nhello\n0\n\n",
        b"0\r\nContent-Length: 9\r\n\r\n",
    ),
    *(b"0\r\n" + b"T: t\r\n" * 5000 + b"\r\n", b"5\r\nhel", b" 5\r\nhello\r\n", b"1\r\nx\r\n" * 3000),
)
STRANGERS = (
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200),  # the first words of TLS
    b"\x05\x01\x00\x05\x01\x00\x03",  # of SOCKS
    b"EHLO there\r\n",
    b"\r\n" * 2000,
    b"\0" * 40_000,
    b"GET /\r\n\r\n",
    b"GET /",
    b"",
)


def hostile_requests(count: int, seed: int, host: str) -> list[HostileRequest]:
    """So many requests, the same for the same seed.

    Args:
        count: How many.
        seed: Of everything that is drawn.
        host: Name and port by which the server may be asked, so that it looks at the rest of a request.
    """
    draw = random.Random(seed)
    kinds = (_line, _header, _host, _chunked, _short, _pipelined, _mutated, _mutated, _stranger)
    return [_sent(*draw.choice(kinds)(draw, host.encode()), draw) for _ in range(count)]


def _request(method: bytes, target: bytes, version: bytes, headers: tuple[bytes, ...], end: bytes = b"\r\n") -> bytes:
    return end.join((b" ".join((method, target, version)), *headers, b"", b""))


def _good(draw: random.Random, host: bytes) -> bytes:
    target = draw.choice((b"/about", b"/search?q=red&k=2", b"/similar?id=1-blue", b"/images/1-blue?thumb=64", b"/"))
    if draw.random() < 0.3:
        body = draw.randbytes(draw.choice((1, 100, 5000)))
        head = (b"Host: " + host, b"Content-Length: " + str(len(body)).encode())
        return _request(b"POST", b"/pictures", b"HTTP/1.1", head) + body
    return _request(b"GET", target, b"HTTP/1.1", (b"Host: " + host, b"Accept: */*"))


def _line(draw: random.Random, host: bytes) -> tuple[str, bytes]:
    parts = [b"GET", b"/about", b"HTTP/1.1"]
    for place in draw.sample(range(3), draw.choice((1, 1, 2))):
        parts[place] = draw.choice((METHODS, TARGETS, VERSIONS)[place])
    return "line", _request(*parts, (b"Host: " + host,))


def _header(draw: random.Random, host: bytes) -> tuple[str, bytes]:
    headers = [b"Host: " + host, *draw.sample(HEADERS, draw.choice((1, 1, 2, 3)))]
    draw.shuffle(headers)
    end = draw.choice(LINE_ENDS) if draw.random() < 0.2 else b"\r\n"
    method, target = draw.choice(
        ((b"GET", b"/about"), (b"GET", b"/images/1-blue"), (b"POST", b"/items?id=x"), (b"GET", b"/"))
    )
    return "header", _request(method, target, b"HTTP/1.1", tuple(headers), end) + draw.choice((b"", b"hello"))


def _host(draw: random.Random, host: bytes) -> tuple[str, bytes]:
    hosts = tuple(b"Host: " + name for name in draw.sample((*HOSTS, host), draw.choice((0, 1, 1, 2))))
    return "host", _request(b"GET", b"/about", b"HTTP/1.1", hosts)


def _chunked(draw: random.Random, host: bytes) -> tuple[str, bytes]:
    head = (b"Host: " + host, b"Transfer-Encoding: chunked")
    target = draw.choice((b"/pictures", b"/about", b"/nothing"))
    return "chunks", _request(b"POST", target, b"HTTP/1.1", head) + b"".join(
        draw.choices(CHUNKS, k=draw.choice((1, 2)))
    )


def _short(draw: random.Random, host: bytes) -> tuple[str, bytes]:
    length = str(draw.choice((10, 1000, 30_000_000))).encode()
    head = (b"Host: " + host, b"Content-Length: " + length)
    return "short body", _request(b"POST", b"/pictures", b"HTTP/1.1", head) + draw.randbytes(5)


def _pipelined(draw: random.Random, host: bytes) -> tuple[str, bytes]:
    requests = [_good(draw, host) for _ in range(draw.randint(2, 20))]
    if draw.random() < 0.5:
        requests.insert(draw.randrange(len(requests)), _mutated(draw, host)[1])
    return "pipelined", b"".join(requests)


def _mutated(draw: random.Random, host: bytes) -> tuple[str, bytes]:
    data = bytearray(_good(draw, host))
    for _ in range(draw.choice((1, 1, 2, 5, 20))):
        place = draw.randrange(len(data) + 1)
        change = draw.random()
        if change < 0.4:
            data[place : place + 1] = draw.randbytes(1)
        elif change < 0.6:
            del data[place : place + draw.randint(1, 8)]
        elif change < 0.8:
            data[place:place] = draw.choice((b"\r\n", b"\n", b"\0", b" ", b":", b"%", draw.randbytes(8)))
        else:
            data[place:place] = data[draw.randrange(len(data) + 1) :][: draw.randint(1, 50)]
    return "mutated", bytes(data)


def _stranger(draw: random.Random, host: bytes) -> tuple[str, bytes]:
    return "no HTTP", draw.choice((*STRANGERS, draw.randbytes(draw.choice((1, 100, 50_000)))))


def _sent(name: str, data: bytes, draw: random.Random) -> HostileRequest:
    leaving: Leaving = draw.choices(("waits", "closes", "resets", "ends"), (7, 1, 1, 1))[0]
    if leaving in ("closes", "resets"):
        data = data[: draw.randint(0, len(data))]
    cuts = sorted(draw.randint(0, len(data)) for _ in range(draw.choice((0, 0, 1, 3))))
    edges = [0, *cuts, len(data)]
    pieces = tuple(data[start:stop] for start, stop in pairwise(edges))
    return HostileRequest(name, pieces, leaving)
