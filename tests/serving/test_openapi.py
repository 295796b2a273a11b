"""What the document of the interface says holds for whatever is asked, and every status that it names is met.

Requests are drawn by schemathesis from the document itself; those for a certain status are written here.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse
from socket import create_connection, socket
from urllib.parse import urlsplit

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import Case, GenerationMode
from schemathesis.schemas import BaseSchema
from schemathesis.specs.openapi.checks import positive_data_acceptance

from rungwise.index import Index
from rungwise.serving import Reranker, ServerSettings, ServingLimits, background, create_app
from tests.colour_model import COLOURS, ColourModel, colour_pictures, picture_bytes
from tests.pointing_model import PointingModel

UPLOAD = ("POST", "/pictures")
ADD = ("POST", "/items")
UPLOADS = (UPLOAD, ADD)
GRADE, CALIBRATE = ("POST", "/grades"), ("POST", "/calibration")
SAVE = ("PUT", "/searches/{name}")
IMAGE, SENT = ("GET", "/images/{id}"), ("GET", "/pictures/{name}")
OPERATIONS = (
    ("GET", "/about"),
    ("GET", "/health"),
    ("GET", "/ready"),
    ("GET", "/metrics"),
    ("GET", "/search"),
    ("GET", "/similar"),
    ("GET", "/values"),
    ("GET", "/why"),
    ("GET", "/captions"),
    ("GET", "/sample"),
    ("GET", "/items/{id}"),
    IMAGE,
    SENT,
    UPLOAD,
    ADD,
    ("GET", "/grades"),
    GRADE,
    CALIBRATE,
    ("DELETE", "/items/{id}"),
    ("GET", "/favourites"),
    ("PUT", "/favourites/{id}"),
    ("DELETE", "/favourites/{id}"),
    ("GET", "/searches"),
    SAVE,
    ("DELETE", "/searches/{name}"),
    ("DELETE", "/queries"),
)
WITHOUT_PARAMETERS = ("/about", "/health", "/ready", "/metrics", "/calibration", "/favourites", "/searches", "/queries")
GOOD = {
    "/search": "/search?q=red",
    "/similar": "/similar?id=1-blue",
    "/values": "/values?column=file&contains=a",
    "/why": "/why?q=blue&id=1-blue",
    "/captions": "/captions?id=1-blue",
    "/items/{id}": "/items/1-blue",
    "/images/{id}": "/images/1-blue",
    "/items": "/items?id=new%2Fone&caption=a%20thing",
    "/favourites/{id}": "/favourites/1-blue",
    "/searches/{name}": "/searches/reds",
}
MISSING = {
    "/search": "/search?like=none",
    "/similar": "/similar?id=none",
    "/why": "/why?q=blue&id=none",
    "/captions": "/captions?id=none",
    "/items/{id}": "/items/none",
    "/images/{id}": "/images/none",
    "/pictures/{name}": "/pictures/none",
    "/favourites/{id}": "/favourites/none",
    "/searches/{name}": "/searches/none",
}
WRONG = {
    "/search": "/search?k=none",
    "/similar": "/similar?k=none",
    "/values": "/values?column=none",
    "/why": "/why?q=&id=1-blue",
    "/captions": "/captions",
    "/sample": "/sample?by=none",
    "/items/{id}": f"/items/{8001 * 'a'}",
    "/images/{id}": "/images/1-blue?thumb=none",
    "/pictures/{name}": f"/pictures/{101 * 'a'}",
    "/pictures": "/pictures",
    "/items": "/items",
    "/grades": "/grades?k=none",
    "/favourites/{id}": f"/favourites/{8001 * 'a'}",
    "/searches/{name}": f"/searches/{401 * 'a'}",
}
TOKEN = "correct-horse"
RERANKER = Reranker(PointingModel(COLOURS))
RED = picture_bytes(COLOURS["red"])
BODIES = {
    UPLOAD: RED,
    ADD: RED,
    GRADE: b'{"query": "red", "id": "1-blue", "grade": "wrong"}',
    SAVE: b'{"q": "red", "where": ""}',
}
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    folder = tmp_path_factory.mktemp("served")
    return Index.build(colour_pictures(folder / "photos", ["red", "blue"]), ColourModel(), folder / "index")


@pytest.fixture(scope="module")
def documented(index: Index) -> BaseSchema:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    return schemathesis.openapi.from_asgi(
        "/openapi.json",
        create_app(index, ColourModel(), reranker=RERANKER, settings=ServerSettings(token=TOKEN)),
        headers=headers,
    )


def test_every_operation_is_asked_below(documented: BaseSchema) -> None:
    found = {(one.ok().method.upper(), one.ok().path) for one in documented.get_all_operations()}
    assert found == set(OPERATIONS)


@pytest.mark.parametrize(
    ("method", "path", "mode"),
    [
        *((*operation, GenerationMode.POSITIVE) for operation in OPERATIONS),
        # Where there are no parameters, none can be wrong.
        *((*operation, GenerationMode.NEGATIVE) for operation in OPERATIONS if operation[1] not in WITHOUT_PARAMETERS),
    ],
)
def test_every_answer_is_as_documented(documented: BaseSchema, method: str, path: str, mode: GenerationMode) -> None:
    operation = documented[path][method]

    @settings(max_examples=8, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(case=operation.as_strategy(generation_mode=mode))
    def asked(case: Case) -> None:
        # No schema can say which words a query needs, or which bytes are a picture.
        excluded = [positive_data_acceptance]
        case.call_and_validate(headers={"Authorization": f"Bearer {TOKEN}"}, excluded_checks=excluded)

    asked()


@dataclass(frozen=True)
class Answer:
    status: int
    kind: str
    etag: str
    content: bytes


def read(response: HTTPResponse) -> Answer:
    kind, _, _ = response.getheader("content-type", "").partition(";")
    return Answer(response.status, kind, response.getheader("etag", ""), response.read())


class Server:
    """A server over real sockets."""

    def __init__(self, address: str) -> None:
        place = urlsplit(address)
        self.place = (place.hostname, place.port)

    def ask(self, method: str, target: str, body: bytes = b"", **headers: str) -> Answer:
        connection = HTTPConnection(*self.place)
        try:
            given = {"Authorization": f"Bearer {TOKEN}"} | {name.replace("_", "-"): headers[name] for name in headers}
            connection.request(method, target, body or None, given)
            return read(connection.getresponse())
        finally:
            connection.close()

    def malformed(self, method: str, target: str) -> Answer:
        with create_connection(self.place) as connection:
            connection.sendall(f"{method} {target} HTTP/1.1\r\nno colon\r\n\r\n".encode())
            response = HTTPResponse(connection)
            response.begin()
            return read(response)

    @contextmanager
    def uploading(self, target: str = UPLOAD[1], method: str = "POST") -> Iterator[socket]:
        """A picture that the server waits for."""
        with create_connection(self.place) as connection:
            head = (
                f"{method} {target} HTTP/1.1",
                "Host: 127.0.0.1",
                f"Authorization: Bearer {TOKEN}",
                "Expect: 100-continue",
                "Content-Type: application/json",
                "Content-Length: 9",
                "",
                "",
            )
            connection.sendall("\r\n".join(head).encode())
            assert connection.recv(100).startswith(b"HTTP/1.1 100")
            yield connection


@contextmanager
def served(index: Index, limits: ServingLimits) -> Iterator[Server]:
    with background(
        index, ColourModel(), reranker=RERANKER, settings=ServerSettings(token=TOKEN, limits=limits)
    ) as address:
        yield Server(address)


@pytest.fixture(scope="module")
def usual(index: Index) -> Iterator[Server]:
    with served(index, ServingLimits(upload_bytes=10_000, uploads_per_client=1)) as server:
        yield server


@pytest.fixture(scope="module")
def hasty(index: Index) -> Iterator[Server]:
    """One connection at once, and little time for a body."""
    with served(index, ServingLimits(connections=1, body_seconds=0.3)) as server:
        yield server


@pytest.fixture(scope="module")
def full(index: Index) -> Iterator[Server]:
    with served(index, ServingLimits(connections=1)) as server, server.uploading():
        yield server


@pytest.fixture
def target(usual: Server, method: str, path: str) -> str:
    if (method, path) == SENT:
        return f"/pictures/{json.loads(usual.ask(*UPLOAD, RED).content)['picture']}"
    if (method, path) == ("DELETE", "/items/{id}"):
        usual.ask("POST", "/items?id=old", RED)
        return "/items/old"
    if (method, path) == ("DELETE", SAVE[1]):
        usual.ask("PUT", GOOD[path], BODIES[SAVE], **JSON)
    return GOOD.get(path, path)


@pytest.fixture
def of_this_operation(
    index: Index, usual: Server, hasty: Server, method: str, path: str, target: str
) -> dict[int, Answer]:
    """The answers with statuses that not every operation can have."""
    found: dict[int, Answer] = {}
    if (method, path) == GRADE:
        found[404] = usual.ask(method, target, BODIES[GRADE].replace(b"1-blue", b"none"), **JSON)
    if (method, path) == CALIBRATE:
        found[422] = usual.ask(method, target)  # before there are grades
        for number in range(24):
            index.grade(f"red {number}", "0-red", "right")
            index.grade(f"red {number}", "1-blue", "wrong")
    if path in WRONG:
        found[422] = usual.ask(method, WRONG[path], b"no picture" if method == "POST" else b"")
    if path in MISSING and (method, path) != SAVE:
        found[404] = usual.ask(method, MISSING[path])
    if (method, path) in (IMAGE, SENT):
        found[304] = usual.ask(method, target, If_None_Match=usual.ask(method, target).etag)
    if (method, path) in UPLOADS:
        with usual.uploading(target):
            found[429] = usual.ask(method, target, RED)
    if (method, path) in BODIES:
        with hasty.uploading(target, method) as connection:
            late = HTTPResponse(connection)
            late.begin()
            found[408] = read(late)
        found[413] = usual.ask(method, target, bytes(20_000), **JSON)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_every_documented_status_is_met(
    documented: BaseSchema,
    usual: Server,
    full: Server,
    of_this_operation: dict[int, Answer],
    method: str,
    path: str,
    target: str,
) -> None:
    body = BODIES.get((method, path), b"")
    answers = of_this_operation | {
        201 if (method, path) == ADD else 200: usual.ask(method, target, body, **JSON),
        400: usual.malformed(method, target),
        401: usual.ask(method, target, body, Authorization="Bearer wrong-horse"),
        403: usual.ask(method, target, body, Origin="http://elsewhere.example"),
        421: usual.ask(method, target, body, Host="elsewhere.example"),
        503: full.ask(method, target, body),
    }
    responses = documented.raw_schema["paths"][path][method.lower()]["responses"]
    assert sorted(answers) == sorted(int(status) for status in responses)
    for status, answer in answers.items():
        assert answer.status == status, answer
        if kinds := responses[str(status)].get("content"):
            assert answer.kind in kinds, answer
        if status >= 400:
            error = json.loads(answer.content)
            assert list(error) == ["error"]
            assert error["error"]
            assert "\n" not in error["error"]
