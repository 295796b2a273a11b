"""Strangers at the door of the server: malformed requests, ways out of a folder, names that are not its own."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from socket import create_connection
from urllib.parse import urlsplit

import pytest

from rungwise.index import Index
from rungwise.serving import ServerSettings, ServingLimits, background, background_app
from rungwise.serving.access import HEADERS
from tests.colour_model import ColourModel, colour_pictures
from tests.hostile.choice import Choice
from tests.hostile.conftest import assert_nothing_bad, in_parts
from tests.hostile.counting import BAD
from tests.hostile.doors import DOORS, LIMITS, PLACE, SECRET, door
from tests.hostile.http import Server, ask_all, asked, run, sent
from tests.hostile.requests import hostile_requests

PAGE = {"serve": b"/about", "demo": b"/degrees/about", "grade": b"/grading/about", "serve-model": b"/v1/models"}
"""An operation of each application that answers with 200."""


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    folder = tmp_path_factory.mktemp("served")
    (folder / "secret.txt").write_bytes(SECRET)
    return Index.build(colour_pictures(folder / "photos", ["red", "blue"]), ColourModel(), folder / "index")


@pytest.fixture
def server(index: Index) -> Iterator[Server]:
    with background(index, ColourModel(), settings=ServerSettings(limits=LIMITS)) as address:
        place = urlsplit(address)
        yield place.hostname, place.port


@pytest.fixture(scope="module", params=DOORS)
def name(request: pytest.FixtureRequest) -> str:
    """Of an application."""
    return str(request.param)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """In which the applications lie."""
    return tmp_path_factory.mktemp("doors")


@pytest.fixture
def opened(name: str, folder: Path) -> Iterator[Server]:
    """A server of each application."""
    with background_app(door(name, folder), settings=ServerSettings(limits=LIMITS)) as address:
        place = urlsplit(address)
        yield place.hostname, place.port


@pytest.mark.slow
def test_a_share_of_the_family_on_every_application(tmp_path: Path) -> None:
    cases = list(run(tmp_path, tmp_path, Choice(share=0.04)))
    assert {case.subject.partition(":")[0] for case in cases} == set(DOORS)
    assert len(cases) > 150
    assert not [case for case in cases if case.verdict in BAD]


@pytest.mark.slow
def test_every_application_answers_under_its_own_names_and_no_page_elsewhere(opened: Server, name: str) -> None:
    own = f"127.0.0.1:{opened[1]}".encode()
    for target in (b"/", PAGE[name], b"/static/no-such.js", b"/nothing"):
        assert asked(opened, target, b"Host: elsewhere.example").startswith(b"HTTP/1.1 421"), target
    for line in (b"Origin: http://elsewhere.example", b"Sec-Fetch-Site: cross-site"):
        assert asked(opened, PAGE[name], b"Host: " + own, line).startswith(b"HTTP/1.1 403"), line


@pytest.mark.slow
def test_every_answer_of_every_application_has_the_headers(opened: Server, name: str) -> None:
    statuses = Counter()
    for target in (b"/", PAGE[name], b"/common/looks.css", b"/static/no-such.js", b"/nothing", PAGE[name] + b"?x=1"):
        got, head = asked(opened, target), asked(opened, target, method=b"HEAD")
        for answer in (got, head):
            assert not [one for one in HEADERS if one.lower().encode() not in answer.lower()], (target, answer[:800])
        assert head.endswith(b"\r\n\r\n")
        assert got.split(b" ")[1] == head.split(b" ")[1]
        assert PLACE.encode() not in got
        statuses[got.split(b" ")[1]] += 1
    pages = name != "serve-model"  # which has no looks
    assert statuses == {b"200": 2 + pages, b"404": 3 - pages, b"422": 1}


@pytest.mark.slow
def test_every_application_has_so_many_places_and_so_much_time(name: str, folder: Path) -> None:
    limits = ServingLimits(connections_per_client=3, header_seconds=0.3, body_seconds=0.3, idle_seconds=1e6)
    with background_app(door(name, folder, limits), settings=ServerSettings(limits=limits)) as address:
        place = urlsplit(address)
        server = place.hostname, place.port
        held = [create_connection(server) for _ in range(3)]
        for one in held:
            one.sendall(b"GET / HTTP/1.1\r\nX: ")
        with create_connection(server) as one, one.makefile("rb") as answer:
            assert answer.readline().startswith(b"HTTP/1.1 503")
        for one in held:
            with one.makefile("rb") as answer:
                assert answer.readline().startswith(b"HTTP/1.1 408")
            one.close()
        assert asked(server, PAGE[name]).startswith(b"HTTP/1.1 200")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("which", "target", "kind", "limit"),
    [
        ("serve", b"/pictures", b"image/png", 1 << 12),
        ("demo", b"/degrees/pictures", b"image/png", 1 << 12),
        ("serve", b"/grades", b"application/json", 1 << 14),
        ("grade", b"/grading/judgements", b"application/json", 1 << 14),
    ],
)
def test_every_body_has_a_size_and_a_time(which: str, target: bytes, kind: bytes, limit: int, folder: Path) -> None:
    limits = ServingLimits(upload_bytes=1 << 12, body_seconds=0.3)
    with background_app(door(which, folder, limits), settings=ServerSettings(limits=limits)) as address:
        place = urlsplit(address)
        server = place.hostname, place.port
        head = b"POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: %s\r\n" % (target, kind)
        large = head + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % (limit + 1) + bytes(limit + 1)
        assert sent(server, large).startswith(b"HTTP/1.1 413")
        assert sent(server, head + b"Content-Length: 9\r\n\r\n{").startswith(b"HTTP/1.1 408")


@pytest.mark.parametrize(
    ("count", "seed"),
    [
        pytest.param(20, 0, marks=pytest.mark.smoke),
        pytest.param(300, 0, marks=pytest.mark.slow),
        *(pytest.param(300, seed, marks=pytest.mark.long) for seed in range(1, 11)),
    ],
)
def test_malformed_requests(server: Server, count: int, seed: int, capfd: pytest.CaptureFixture[str]) -> None:
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
def test_no_way_leads_out_of_a_folder(server: Server, below: bytes) -> None:
    assert len(set(WAYS_OUT)) == 22
    for way in WAYS_OUT:
        answer = asked(server, below + way)
        status = int(answer.split(b" ", 2)[1])
        assert 400 <= status < 500, (below + way, answer)
        assert SECRET not in answer
        assert b"root:" not in answer


@pytest.mark.slow
def test_the_source_is_not_below_the_static_files(server: Server) -> None:
    for way in (b"../app.py", b"..%2fapp.py", b"%2e%2e/app.py", b"..%2f..%2f__init__.py", b"./../app.py"):
        answer = asked(server, b"/static/" + way)
        assert answer.startswith(b"HTTP/1.1 404"), (way, answer)


@pytest.mark.slow
def test_a_link_beside_the_pictures_is_not_a_picture(index: Index, server: Server) -> None:
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
def test_the_server_answers_under_its_own_names_alone(server: Server) -> None:
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
def test_pages_elsewhere_are_refused(server: Server) -> None:
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
    with background(index, ColourModel(), settings=ServerSettings(token="correct-horse-battery")) as address:
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


@pytest.mark.long
@in_parts(3)
def test_every_hostile_request_is_answered_well(part: str, tmp_path: Path) -> None:
    assert_nothing_bad("http", part, tmp_path, 1000)
