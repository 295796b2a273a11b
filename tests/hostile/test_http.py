"""Strangers at the door of the server: malformed requests, ways out of a folder, names that are not its own."""

import asyncio
import re
import struct
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from socket import SO_LINGER, SOL_SOCKET, create_connection
from urllib.parse import urlsplit

import pytest

from rungwise.index import Index
from rungwise.serving import ServingLimits, background
from tests.colour_model import ColourModel, colour_pictures
from tests.hostile.requests import HostileRequest, hostile_requests

AT_ONCE = 40

LIMITS = ServingLimits(header_seconds=0.5, body_seconds=0.5, idle_seconds=0.3, send_seconds=2.0)
SECRET = b"nobody may read this"


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    folder = tmp_path_factory.mktemp("served")
    (folder / "secret.txt").write_bytes(SECRET)
    return Index.build(colour_pictures(folder / "photos", ["red", "blue"]), ColourModel(), folder / "index")


@pytest.fixture
def server(index: Index) -> Iterator[tuple[str, int]]:
    with background(index, ColourModel(), limits=LIMITS) as address:
        place = urlsplit(address)
        yield place.hostname, place.port


async def outcome(place: tuple[str, int], request: HostileRequest) -> tuple[str, bytes]:
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
    given = [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3})", answer)]
    if any(status >= 500 for status in given):
        return "5xx", answer
    return "accepted" if any(status < 400 for status in given) else "clean", answer


async def ask_all(place: tuple[str, int], requests: list[HostileRequest]) -> list[tuple[str, bytes]]:
    door = asyncio.Semaphore(AT_ONCE)

    async def one(request: HostileRequest) -> tuple[str, bytes]:
        async with door:
            return await outcome(place, request)

    return await asyncio.gather(*(one(request) for request in requests))


@pytest.mark.parametrize(
    ("count", "seed"),
    [
        pytest.param(20, 0, marks=pytest.mark.smoke),
        pytest.param(300, 0, marks=pytest.mark.slow),
        *(pytest.param(300, seed, marks=pytest.mark.long) for seed in range(1, 11)),
    ],
)
def test_malformed_requests(server: tuple[str, int], count: int, seed: int, capfd: pytest.CaptureFixture[str]) -> None:
    host, port = server
    requests = hostile_requests(count, seed, f"{host}:{port}")
    outcomes = asyncio.run(ask_all(server, requests))
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for request, (verdict, _) in zip(requests, outcomes, strict=True):
        counts[request.name][verdict] += 1
        counts["all"][verdict] += 1
    captured = capfd.readouterr()
    print("\n".join(f"{name:12}{dict(sorted(found.items()))}" for name, found in counts.items()))
    for request, (verdict, answer) in zip(requests, outcomes, strict=True):
        assert verdict in ("clean", "accepted"), f"{verdict}: {request}: {answer[:500]!r}"
    assert captured.err == ""
    assert asked(server, b"/about").startswith(b"HTTP/1.1 200")


def asked(place: tuple[str, int], target: bytes, *headers: bytes, method: bytes = b"GET") -> bytes:
    """The whole answer to one request, sent as it stands."""
    named = headers if any(line.startswith(b"Host:") for line in headers) else (b"Host: 127.0.0.1", *headers)
    return sent(place, b"\r\n".join((method + b" " + target + b" HTTP/1.1", *named, b"Connection: close", b"", b"")))


def sent(place: tuple[str, int], request: bytes) -> bytes:
    """Everything that is answered until the server closes."""
    with create_connection(place) as connection, connection.makefile("rb") as answer:
        connection.sendall(request)
        return answer.read()


WAYS_OUT = (
    *(b"../secret.txt", b"../../secret.txt", b"..%2fsecret.txt", b"..%2Fsecret.txt", b"%2e%2e/secret.txt"),
    *(b"%2e%2e%2fsecret.txt", b"%252e%252e%252fsecret.txt", b"..\\secret.txt", b"..%5csecret.txt", b"....//secret.txt"),
    *(
        b"..;/secret.txt",
        b"%c0%ae%c0%ae/secret.txt",
        b"%uff0e%uff0e/secret.txt",
        b"..%00/secret.txt",
        b"secret.txt%00.png",
    ),
    *(b"/etc/passwd", b"%2fetc%2fpasswd", b"file:///etc/passwd", b"../" * 40 + b"etc/passwd", b"./../secret.txt"),
    *(b"0/../../secret.txt", b"0%2f..%2f..%2fsecret.txt"),
)


@pytest.mark.slow
@pytest.mark.parametrize("below", [b"/pictures/", b"/static/", b"/images/", b"/items/", b"http://127.0.0.1/static/"])
def test_no_way_leads_out_of_a_folder(server: tuple[str, int], below: bytes) -> None:
    assert len(set(WAYS_OUT)) == 22
    for way in WAYS_OUT:
        answer = asked(server, below + way)
        status = int(answer.split(b" ", 2)[1])
        assert 400 <= status < 500, (below + way, answer)
        assert SECRET not in answer
        assert b"root:" not in answer


@pytest.mark.slow
def test_the_source_is_not_below_the_static_files(server: tuple[str, int]) -> None:
    for way in (b"../app.py", b"..%2fapp.py", b"%2e%2e/app.py", b"..%2f..%2f__init__.py", b"./../app.py"):
        answer = asked(server, b"/static/" + way)
        assert answer.startswith(b"HTTP/1.1 404"), (way, answer)


@pytest.mark.slow
def test_a_link_beside_the_pictures_is_not_a_picture(index: Index, server: tuple[str, int]) -> None:
    assert next(iter(index.items())).path is not None
    picture = Path(next(iter(index.items())).path)
    kept = picture.read_bytes()
    try:
        picture.unlink()
        picture.symlink_to(index.folder.parent / "secret.txt")
        for target in (b"/images/0-red", b"/images/0-red?thumb=64"):
            assert SECRET not in asked(server, target)
    finally:
        picture.unlink()
        picture.write_bytes(kept)


@pytest.mark.slow
def test_the_server_answers_under_its_own_names_alone(server: tuple[str, int]) -> None:
    """Those forms that no client library would send; tests/serving has the rest."""
    port = str(server[1]).encode()
    for host in (b"127.0.0.1:" + port, b"localhost:" + port, b"LOCALHOST"):
        assert asked(server, b"/about", b"Host: " + host).startswith(b"HTTP/1.1 200"), host
    for host in (
        b"elsewhere.example",
        b"127.0.0.1.elsewhere.example",
        b"\xff",
        b"127.0.0.1@elsewhere",
        b"localhost\\x",
    ):
        assert asked(server, b"/about", b"Host: " + host).startswith((b"HTTP/1.1 421", b"HTTP/1.1 400")), host
    twice = asked(server, b"/about", b"Host: 127.0.0.1", b"Host: elsewhere.example")
    assert twice.startswith(b"HTTP/1.1 400")
    # The name in an absolute target must not take the place of the one that is checked.
    assert asked(server, b"http://127.0.0.1/about", b"Host: elsewhere.example").startswith(b"HTTP/1.1 421")
    assert sent(server, b"GET /about HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 421")


@pytest.mark.slow
def test_pages_elsewhere_are_refused(server: tuple[str, int]) -> None:
    own = f"127.0.0.1:{server[1]}".encode()
    same = asked(server, b"/search?q=red", b"Host: " + own, b"Origin: http://" + own, b"Sec-Fetch-Site: same-origin")
    assert same.startswith(b"HTTP/1.1 200")
    for line in (
        *(b"Origin: http://elsewhere.example", b"Origin: null", b"Origin: http://" + own + b".elsewhere.example"),
        *(b"Origin: http://127.0.0.1:1", b"Origin: file://" + own, b"Origin: \xff", b"Origin:"),
        *(b"Sec-Fetch-Site: cross-site", b"Sec-Fetch-Site: same-site"),
    ):
        for target in (b"/search?q=red", b"/images/0-red", b"/about"):
            answer = asked(server, target, b"Host: " + own, line)
            assert answer.startswith(b"HTTP/1.1 403"), (target, line, answer)


@pytest.mark.slow
def test_a_token_lets_in_who_has_it(index: Index) -> None:
    with background(index, ColourModel(), token="correct-horse-battery") as address:
        place = urlsplit(address)
        server = place.hostname, place.port
        right = b"Authorization: Bearer correct-horse-battery"
        assert asked(server, b"/about", right).startswith(b"HTTP/1.1 200")
        for line in (
            *(b"X: no token", right[:-1], right + b"x", right.upper(), b"Authorization: correct-horse-battery"),
            *(b"Authorization: Basic correct-horse-battery", b"Authorization: Bearer \xff", b"Authorization: Bearer"),
        ):
            for target in (
                b"/about",
                b"/about?token=correct-horse-battery",
                b"/images/0-red",
                b"/openapi.json",
            ):
                answer = asked(server, target, line)
                assert answer.startswith(b"HTTP/1.1 401"), (target, line, answer)
                assert b"correct-horse" not in answer
