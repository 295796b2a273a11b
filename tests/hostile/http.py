"""Requests that no client should send, to every application that listens: what each is answered, and what the log says.

The applications are those of ``rungwise serve``, ``demo``, ``grade`` and ``serve-model``, behind real sockets. A
request is well answered if its status is one that is expected, and the answer has the headers of every answer, is one
short line where it refuses, and tells nothing of where files lie. Whatever a client does, the server's log has no
traceback, and others are answered afterwards.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from socket import SO_LINGER, SOL_SOCKET, create_connection
from typing import Any
from urllib.parse import quote, urlsplit

from rungwise.serving import ServerSettings, background_app
from rungwise.serving.access import HEADERS
from tests.hostile.choice import Choice
from tests.hostile.counting import Case, Verdict
from tests.hostile.doors import DOORS, LIMITS, PLACE, SECRET, door
from tests.hostile.forked import outcome_of
from tests.hostile.requests import HostileRequest, Leaving, hostile_requests

FAMILY = "http"

AT_ONCE = 40
DRAWN = 600
"""Requests that are drawn from a seed, for each application."""

LONGEST_REFUSAL = 1500
"""Bytes of a refusal, whatever was sent."""

_NO_HTTP = (400, 408, 431)
"""Statuses of what is refused before any application, where not even the method may be known."""
_STATUS = re.compile(rb"HTTP/1\.1 (\d{3})")

Server = tuple[str, int]


@dataclass(frozen=True)
class Attack:
    """A request, or what is sent in its place.

    Attributes:
        subject: The kind of it, for the table.
        name: In words that find it again.
        request: What is sent, and how the client leaves.
        statuses: That may be answered; any that is none of a failure if it is empty.
        ends: Whether the server must not read on behind it.
    """

    subject: str
    name: str
    request: HostileRequest
    statuses: tuple[int, ...] = ()
    ends: bool = False


def run(world: Path, scratch: Path, choice: Choice) -> Iterator[Case]:
    """Carry out the attacks on each application and judge its answers."""
    for name in DOORS:
        played = outcome_of(partial(_played, name, scratch / name, choice), memory=None)
        if played.ending != "returned":
            yield Case(FAMILY, name, "the server", "traceback", played.text)
            continue
        for subject, attack, verdict, detail in played.value:
            yield Case(FAMILY, f"{name}: {subject}", attack, verdict, detail)


def _played(name: str, folder: Path, choice: Choice) -> list[tuple[str, str, Verdict, str]]:
    with background_app(door(name, folder), settings=ServerSettings(limits=LIMITS)) as address:
        place = urlsplit(address)
        assert place.hostname
        assert place.port
        server = place.hostname, place.port
        chosen = [one for one in attacks(server, choice.seed) if choice.takes(f"{name}: {one.subject}: {one.name}")]
        return asyncio.run(_judge_all(server, chosen))


def attacks(server: Server, seed: int) -> Iterator[Attack]:
    """All requests for the application that answers there."""
    host = f"{server[0]}:{server[1]}".encode()
    yield from framing(host)
    yield from leavings(host)
    yield from elsewhere(host)
    yield from parameters(server)
    for number, one in enumerate(hostile_requests(DRAWN, seed, host.decode())):
        yield Attack("drawn", f"{number}: {one.name}", one)


def framing(host: bytes) -> Iterator[Attack]:
    """Requests whose end, or whose meaning, two servers could see differently (RFC 9112)."""
    named = b"Host: " + host
    get = b"GET / HTTP/1.1\r\n" + named + b"\r\n"
    post = b"POST /nothing HTTP/1.1\r\n" + named + b"\r\n"
    chunked = post + b"Transfer-Encoding: chunked\r\n"
    last = b"\r\n0\r\n\r\n"
    refused = {
        "both lengths": post + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n" + last,
        "both lengths, turned": chunked + b"Content-Length: 5\r\n" + last,
        "HTTP/1.0 in chunks": chunked.replace(b"HTTP/1.1", b"HTTP/1.0") + last,
        "two codings": post + b"Transfer-Encoding: gzip, chunked\r\n" + last,
        "chunked twice": chunked + b"Transfer-Encoding: chunked\r\n" + last,
        "chunked behind a tabulator": post + b"Transfer-Encoding: \x0bchunked\r\n" + last,
        "blank before the colon": post + b"Transfer-Encoding : chunked\r\n" + last,
        "tabulator before the colon": get + b"X\t: a\r\n\r\n",
        "two other lengths": post + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nx",
        "a list of other lengths": post + b"Content-Length: 1, 2\r\n\r\nx",
        **{f"length {bad.decode('latin-1')!r}": post + b"Content-Length: " + bad + b"\r\n\r\nx"
           for bad in (b"+1", b"-1", b"1_0", b"0x1", b"", b"\xd9\xa1", b"9" * 30, b"1.0", b"1 1")},
        "a fold before the first header": b"GET / HTTP/1.1\r\n X: a\r\n" + named + b"\r\n\r\n",
        "CR in a value": get + b"X: a\rContent-Length: 5\r\n\r\n",
        "CR CR LF": get + b"X: a\r\r\n\r\n",
        "no colon": get + b"X\r\n\r\n",
        "no name": get + b": x\r\n\r\n",
        "NUL in a value": get + b"X: a\0b\r\n\r\n",
        "NUL in a name": get + b"X\0: a\r\n\r\n",
        "NUL in the target": get.replace(b"GET /", b"GET /\0") + b"\r\n",
        "Host twice": get + named + b"\r\n\r\n",
        "Host twice, another": get + b"Host: elsewhere.example\r\n\r\n",
        "no Host": b"GET / HTTP/1.1\r\n\r\n",
        "HTTP/2": b"PRI * HTTP/2.0\r\n" + named + b"\r\n\r\nSM\r\n\r\n",
        "HTTP/0.9": b"GET /\r\n\r\n",
        "HTTP/9.9": get.replace(b"HTTP/1.1", b"HTTP/9.9") + b"\r\n",
        "refused while it waits for 100": chunked + b"Expect: 100-continue\r\n\r\nno number\r\n",
    }  # fmt: skip
    for name, data in refused.items():
        yield Attack("framing", name, _sent(name, data), (400,), ends=True)
    chunks = {
        "0x1": b"0x1\r\nx\r\n", "-1": b"-1\r\nx\r\n", "+1": b"+1\r\nx\r\n", "blank": b" 1\r\nx\r\n",
        "1_0": b"1_0\r\nx\r\n", "23 digits": b"0" * 22 + b"1\r\nx\r\n", "LF in an extension": b"1;a\nb\r\nx\r\n",
        "no line end": b"1\r\nxXX0\r\n", "no number": b"g\r\n",
    }  # fmt: skip
    for name, data in chunks.items():
        # Where nothing is read of a body, the answer may be on its way when the chunk comes.
        yield Attack("framing", f"chunk {name}", _sent(name, chunked + b"\r\n" + data), (400, 404, 405), ends=True)
    taken = {
        "a length twice": post + b"Content-Length: 1\r\nContent-Length: 1\r\n\r\nx",
        "a folded value": get + b"X: a\r\n folded\r\n\r\n",
        "LF alone": (get + b"\r\n").replace(b"\r\n", b"\n"),
        "GET with a body": get + b"Content-Length: 5\r\n\r\nhello",
        "an extension of a chunk": chunked + b"\r\n1;a=b\r\nx" + last,
        "a trailer": chunked + b"\r\n0\r\nContent-Length: 9\r\n\r\n",
        "an upgrade to HTTP/2": get
        + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: A\r\n\r\n",
        "an upgrade to a websocket": get + b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\n\r\n",
        "an expectation of another kind": get + b"Expect: the-worst\r\n\r\n",
        "an absolute target of another host": get.replace(b"GET /", b"GET http://elsewhere.example/") + b"\r\n",
        "TRACE": get.replace(b"GET", b"TRACE") + b"\r\n",
        "CONNECT": get.replace(b"GET /", b"CONNECT 127.0.0.1:80") + b"\r\n",
    }
    for name, data in taken.items():
        yield Attack("framing", name, _sent(name, data), (200, 400, 404, 405, 421))
    slow = {
        "CR alone": get.replace(b"\r\n", b"\r") + b"\r\r",
        "half a head": get,
        "half a body": post + b"Content-Length: 9\r\n\r\nx",
    }
    for name, data in slow.items():
        yield Attack("framing", name, _sent(name, data), (404, 405, 408))


def leavings(host: bytes) -> Iterator[Attack]:
    """Clients that close, reset or say that nothing follows, at every seventh byte of a request."""
    named = b"Host: " + host + b"\r\n"
    whole = {
        "GET": b"GET / HTTP/1.1\r\n" + named + b"\r\n",
        "two at once": (b"GET / HTTP/1.1\r\n" + named + b"\r\n") * 2,
        "a body": b"POST /nothing HTTP/1.1\r\n" + named + b"Content-Length: 10\r\n\r\n0123456789",
        "a body that was waited for": b"POST /pictures HTTP/1.1\r\n" + named
        + b"Expect: 100-continue\r\nContent-Length: 10\r\n\r\n0123456789",
        "chunks": b"POST /pictures HTTP/1.1\r\n" + named + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        "JSON": b"POST /grading/judgements HTTP/1.1\r\n" + named
        + b"Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{\"who\":1}",
    }  # fmt: skip
    ways: tuple[Leaving, ...] = ("closes", "resets", "ends")
    for (name, data), way in product(whole.items(), ways):
        for at in (*range(0, len(data), 7), len(data)):
            request = HostileRequest(name, (data[:at],), way)
            yield Attack("leaving", f"{name}: {way} after {at} of {len(data)} bytes", request)


def elsewhere(host: bytes) -> Iterator[Attack]:
    """Names that are not the server's, and pages of others that ask in a visitor's browser."""
    for path in (b"/", b"/openapi.json", b"/nothing", b"/static/no-such.js"):
        for name in (
            b"elsewhere.example",
            b"127.0.0.1@elsewhere",
            b"127.0.0.1, elsewhere.example",
            b"localhost\\x",
            b"[::1",
        ):
            yield _asking("other names", path, (b"Host: " + name,), (421,))
    own = b"Host: " + host
    for line in (
        *(
            b"Origin: http://elsewhere.example",
            b"Origin: null",
            b"Origin: http://127.0.0.1:1",
            b"Origin: file://" + host,
        ),
        *(b"Sec-Fetch-Site: cross-site", b"Sec-Fetch-Site: same-site", b"Origin: \xff", b"Origin:"),
    ):
        yield _asking("pages elsewhere", b"/openapi.json", (own, line), (403,))
        yield _asking("pages elsewhere", b"/nothing", (own, line), (403,))
        yield _asking("pages elsewhere", b"/", (own, line), (200,))  # they may lead here
    for path in (b"/", b"/openapi.json", b"/nothing", b"/static/../app.py", b"/static/%00", b"/common/looks.css"):
        yield _asking("HEAD", path, (own,), (200, 404), b"HEAD")


ODD = {
    "9,000 letters": "x" * 9000,
    "a line break": "a\nb",
    "NUL": "a\0b",
    "halves of characters": "\ud800",
    "marks of direction": "\u202egpj",
    "nothing that is seen": "\u3164",
    "blanks": " \t ",
    "nothing": "",
    "below nothing": "-1",
    "many digits": "9" * 400,
    "no number": "nan",
    "a path": "../../secret.txt",
    "an absolute path": "/etc/passwd",
    "blanks between": f"a without b{' ' * 1950}",
    "quotes": "“ " * 900,
    "a list": "no , " * 380,
    "parentheses": "(" * 900,
    "a filter": "“x” == 1 and " * 140,
}
"""Values of parameters."""


def parameters(server: Server) -> Iterator[Attack]:
    """Every operation that the interface describes, with odd values, misspelt and doubled names, and odd bodies."""
    pages = [prefix for prefix in ("", "/triplet", "/degrees") if _answer(server, f"{prefix}/openapi.json")[0] == 200]
    for prefix in pages:
        described = json.loads(_answer(server, f"{prefix}/openapi.json")[1])
        for path, methods in described["paths"].items():
            for method, operation in methods.items():
                yield from _of_operation(server, prefix + path, method.upper(), operation)


def _of_operation(server: Server, path: str, method: str, operation: dict[str, Any]) -> Iterator[Attack]:
    own = f"Host: {server[0]}:{server[1]}".encode()
    given = operation.get("parameters", [])
    in_path = [one["name"] for one in given if one["in"] == "path"]
    in_query = [one["name"] for one in given if one["in"] == "query"]
    plain = re.sub(r"{\w+}", "0", path)
    where = f"{method} {path}"
    # 403 where the application takes nothing of anybody; 429 and 503 where it is busy with what was sent before.
    fine = (200, 201, 403, 404, 409, 413, 422, 429, 431, 503)

    def attack(name: str, target: str, statuses: tuple[int, ...], body: bytes = b"", kind: str = "") -> Attack:
        lines = [own, *([f"Content-Type: {kind}".encode()] if kind else [])]
        if body:
            lines.append(b"Content-Length: %d" % len(body))
        one = _asking("operations", target.encode("ascii"), tuple(lines), statuses, method.encode(), body)
        return Attack("operations", f"{where}: {name}", one.request, statuses)

    for name, value in ODD.items():
        sent = quote(value, safe="", errors="surrogatepass")
        for one in in_path:
            yield attack(f"{one} in the path: {name}", path.replace(f"{{{one}}}", sent), (*fine, 307, 405))
        for one in in_query:
            yield attack(f"{one}: {name}", f"{plain}?{one}={sent}", fine)
        yield attack(f"a parameter called {name}", f"{plain}?{sent or '%20'}=1", (422, 431))
    for one in in_query:
        yield attack(f"{one} misspelt", f"{plain}?{one}y=1", (422,))
        array = next(each for each in given if each["name"] == one)["schema"].get("type") == "array"
        yield attack(f"{one} twice", f"{plain}?{one}=1&{one}=1", fine if array else (422,))
    if method == "POST":
        for kind in ("", "application/json", "text/plain", "multipart/form-data; boundary=x"):
            for name, body in (
                *(
                    ("no JSON", b"{"),
                    ("a list", b"[]"),
                    ("deep", b"[" * 5000),
                    ("NaN", b'{"grade": NaN}'),
                    ("nothing", b""),
                ),
                *(("another name", b'{"gradee": 1}'), ("a name twice", b'{"who": "a", "who": "b"}')),
                ("half a character", b'{"who": "\\ud800", "query": "\\ud800", "id": "\\ud800", "grade": null}'),
                ("20,000 bytes", b'{"who": "' + b"x" * 20_000 + b'"}'),
            ):
                yield attack(
                    f"body of {name}, sent as {kind or 'nothing'}", plain, (403, 408, 413, 422, 429, 503), body, kind
                )


def _sent(name: str, data: bytes) -> HostileRequest:
    return HostileRequest(name, (data,), "waits")


def _asking(
    subject: str,
    target: bytes,
    lines: tuple[bytes, ...],
    statuses: tuple[int, ...],
    method: bytes = b"GET",
    body: bytes = b"",
) -> Attack:
    head = b"\r\n".join((method + b" " + target + b" HTTP/1.1", *lines, b"Connection: close", b"", b""))
    name = f"{method.decode()} {target.decode('ascii')}, {lines[-1].decode('latin-1')!r}"
    return Attack(subject, name, _sent(name, head + body), statuses)


async def _judge_all(server: Server, chosen: Sequence[Attack]) -> list[tuple[str, str, Verdict, str]]:
    """Each by itself would wait for the limits of time; the log is looked at after some at once."""
    found: list[tuple[str, str, Verdict, str]] = []
    for start in range(0, len(chosen), AT_ONCE):
        some = chosen[start : start + AT_ONCE]
        before = _logged()
        answers = await asyncio.gather(*(_answered(server, one) for one in some))
        said = os.pread(2, _logged() - before, before).decode("utf-8", "replace") if _logged() > before else ""
        rows = [(one.subject, one.name, *judged(one, answer)) for one, answer in zip(some, answers, strict=True)]
        if "Traceback" in said or "Exception" in said:
            names = "; ".join(one.name for one in some)
            rows.append((some[0].subject, f"one of {names}", "traceback", said[-2000:]))
        found += rows
    return found


def _logged() -> int:
    """Bytes that the server wrote to its log, where that is a file."""
    return os.fstat(2).st_size


async def _answered(server: Server, attack: Attack) -> bytes:
    if not attack.ends:
        return (await outcome(server, attack.request))[1]
    # Another request behind it, which must not be answered.
    behind = b"GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    return (await outcome(server, HostileRequest(attack.request.name, (*attack.request.pieces, behind), "waits")))[1]


def judged(attack: Attack, answer: bytes) -> tuple[Verdict, str]:
    """What an answer means."""
    shown = repr(answer[:600])
    if attack.request.leaving != "waits" and not answer:
        return "clean", "it left"
    statuses = [int(one) for one in _STATUS.findall(answer) if one != b"100"]
    if PLACE.encode() in answer or SECRET in answer or b"root:x:" in answer:
        return "wrong", f"the answer tells of a file: {shown}"
    if attack.ends and len(statuses) > 1:
        return "wrong", f"the server read on: {shown}"
    if any(status >= 500 and status != 503 for status in statuses):
        return "traceback", shown
    if not statuses:
        return ("clean", "hung up on") if not answer and not attack.statuses else ("wrong", f"no answer: {shown}")
    if attack.statuses and statuses[-1] not in attack.statuses:
        return "wrong", f"status {statuses[-1]}, expected {attack.statuses}: {shown}"
    if len(statuses) == 1 and (wrong := _odd(answer, statuses[0], attack)):
        return "wrong", f"{wrong}: {shown}"
    return ("clean" if statuses[-1] >= 400 else "accepted"), f"status {statuses[-1]}"


def _odd(answer: bytes, status: int, attack: Attack) -> str:
    """What is wrong with a single answer."""
    answer = answer[answer.index(b"HTTP/1.1 %d" % status) :]
    head, _, body = answer.partition(b"\r\n\r\n")
    if attack.request.pieces[0].startswith(b"HEAD") and status not in _NO_HTTP:
        return "a body for HEAD" if body else ""
    # What is no HTTP is refused before any application; what is not is answered through the entrance.
    if status not in _NO_HTTP and (lacking := [name for name in HEADERS if name.lower().encode() not in head.lower()]):
        return f"without {lacking[0]}"
    if status < 400:
        return ""
    if b"content-type: application/json" not in head.lower():
        return "" if b"<form" in body else "a refusal that is no JSON"
    message = json.loads(body)
    if list(message) != ["error"]:
        return "a refusal that is no line"
    line = message["error"]["message"] if isinstance(message["error"], dict) else message["error"]
    if not line.strip() or "\n" in line:
        return "a refusal that is no line"
    return "what was sent comes back whole" if len(body) > LONGEST_REFUSAL else ""


async def outcome(place: Server, request: HostileRequest) -> tuple[str, bytes]:
    """``clean`` (refused, or hung up on), ``accepted`` or ``5xx``, and what was answered until the server closed."""
    answer = b""
    reader, writer = await asyncio.open_connection(*place)
    try:
        for piece in request.pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)
        if request.leaving == "ends":
            writer.write_eof()
        while request.leaving in ("waits", "ends") and (part := await reader.read(1 << 16)):
            answer += part
    except OSError:  # hung up on
        pass
    finally:
        if request.leaving == "resets":
            with suppress(OSError):  # it may be closed by now
                writer.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
    given = [int(status) for status in _STATUS.findall(answer)]
    if any(status >= 500 for status in given):
        return "5xx", answer
    return "accepted" if any(status < 400 for status in given) else "clean", answer


async def ask_all(place: Server, requests: Sequence[HostileRequest]) -> list[tuple[str, bytes]]:
    """The outcome of each, some at once."""
    free = asyncio.Semaphore(AT_ONCE)

    async def one(request: HostileRequest) -> tuple[str, bytes]:
        async with free:
            return await outcome(place, request)

    return await asyncio.gather(*(one(request) for request in requests))


def asked(place: Server, target: bytes, *headers: bytes, method: bytes = b"GET") -> bytes:
    """The whole answer to one request, sent as it stands."""
    named = headers if any(line.startswith(b"Host:") for line in headers) else (b"Host: 127.0.0.1", *headers)
    return sent(place, b"\r\n".join((method + b" " + target + b" HTTP/1.1", *named, b"Connection: close", b"", b"")))


def sent(place: Server, request: bytes) -> bytes:
    """Everything that is answered until the server closes."""
    with create_connection(place) as connection, connection.makefile("rb") as answer:
        connection.sendall(request)
        return answer.read()


def _answer(place: Server, target: str) -> tuple[int, bytes]:
    """Status and body of the answer to a plain request."""
    head, _, body = asked(place, target.encode("ascii")).partition(b"\r\n\r\n")
    return int(head.split(b" ", 2)[1]), body
