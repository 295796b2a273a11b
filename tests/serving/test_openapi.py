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
from rungwise.serving import ServingLimits, background, create_app
from tests.colour_model import COLOURS, ColourModel, colour_pictures, picture_bytes

UPLOAD = ("POST", "/api/search-by-picture")
PICTURE = ("GET", "/pictures/{number}")
OPERATIONS = (("GET", "/api/status"), ("GET", "/api/search"), ("GET", "/api/similar/{number}"), UPLOAD, PICTURE)
GOOD = {"/api/search": "/api/search?q=red", "/api/similar/{number}": "/api/similar/1", PICTURE[1]: "/pictures/1"}
RED = picture_bytes(COLOURS["red"])


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    folder = tmp_path_factory.mktemp("served")
    return Index.build(colour_pictures(folder / "photos", ["red", "blue"]), ColourModel(), folder / "index")


@pytest.fixture(scope="module")
def documented(index: Index) -> BaseSchema:
    return schemathesis.openapi.from_asgi("/openapi.json", create_app(index, ColourModel()))


def test_every_operation_is_asked_below(documented: BaseSchema) -> None:
    found = {(one.ok().method.upper(), one.ok().path) for one in documented.get_all_operations()}
    assert found == set(OPERATIONS)


@pytest.mark.parametrize(
    ("method", "path", "mode"),
    [
        *((*operation, GenerationMode.POSITIVE) for operation in OPERATIONS),
        # The first takes no parameters, so none can be wrong.
        *((*operation, GenerationMode.NEGATIVE) for operation in OPERATIONS[1:]),
    ],
)
def test_every_answer_is_as_documented(documented: BaseSchema, method: str, path: str, mode: GenerationMode) -> None:
    operation = documented[path][method]

    @settings(max_examples=40, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(case=operation.as_strategy(generation_mode=mode))
    def asked(case: Case) -> None:
        # No schema can say which words a query needs, or which bytes are a picture.
        case.call_and_validate(excluded_checks=[positive_data_acceptance])

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
        connection = HTTPConnection(*self.place, timeout=60)
        try:
            connection.request(
                method, target, body or None, {name.replace("_", "-"): headers[name] for name in headers}
            )
            return read(connection.getresponse())
        finally:
            connection.close()

    def malformed(self, method: str, target: str) -> Answer:
        with create_connection(self.place, timeout=60) as connection:
            connection.sendall(f"{method} {target} HTTP/1.1\r\nno colon\r\n\r\n".encode())
            response = HTTPResponse(connection)
            response.begin()
            return read(response)

    @contextmanager
    def uploading(self) -> Iterator[socket]:
        """A picture that the server waits for."""
        with create_connection(self.place, timeout=60) as connection:
            head = (
                f"POST {UPLOAD[1]} HTTP/1.1",
                "Host: 127.0.0.1",
                "Expect: 100-continue",
                "Content-Length: 9",
                "",
                "",
            )
            connection.sendall("\r\n".join(head).encode())
            assert connection.recv(100).startswith(b"HTTP/1.1 100")
            yield connection


@pytest.fixture(scope="module")
def usual(index: Index) -> Iterator[Server]:
    with background(index, ColourModel(), limits=ServingLimits(upload_bytes=10_000, uploads_per_client=1)) as address:
        yield Server(address)


@pytest.fixture(scope="module")
def guarded(index: Index) -> Iterator[Server]:
    with background(index, ColourModel(), token="correct-horse") as address:
        yield Server(address)


@pytest.fixture(scope="module")
def hasty(index: Index) -> Iterator[Server]:
    """One connection at once, and little time for a body."""
    with background(index, ColourModel(), limits=ServingLimits(connections=1, body_seconds=0.3)) as address:
        yield Server(address)


@pytest.fixture(scope="module")
def full(index: Index) -> Iterator[Server]:
    with background(index, ColourModel(), limits=ServingLimits(connections=1)) as address:
        server = Server(address)
        with server.uploading():
            yield server


@pytest.fixture
def of_this_operation(usual: Server, hasty: Server, method: str, path: str) -> dict[int, Answer]:
    """The answers with statuses that not every operation can have."""
    if (method, path) == UPLOAD:
        with usual.uploading():
            too_many = usual.ask(method, path, RED)
        with hasty.uploading() as connection:
            late = HTTPResponse(connection)
            late.begin()
            too_late = read(late)
        return {
            408: too_late,
            413: usual.ask(method, path, bytes(20_000)),
            422: usual.ask(method, path, b"no picture"),
            429: too_many,
        }
    found = {422: usual.ask(method, f"{path.replace('{number}', '1')}?k=none&thumb=none")}
    if "{number}" in path:
        found[404] = usual.ask(method, path.replace("{number}", "99"))
        found[409] = usual.ask(method, path.replace("{number}", "1?v=another"))
    if (method, path) == PICTURE:
        found[304] = usual.ask(method, "/pictures/1", If_None_Match=usual.ask(method, "/pictures/1").etag)
    return {} if path == "/api/status" else found


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_every_documented_status_is_met(
    documented: BaseSchema,
    usual: Server,
    guarded: Server,
    full: Server,
    of_this_operation: dict[int, Answer],
    method: str,
    path: str,
) -> None:
    target, body = GOOD.get(path, path), RED if method == "POST" else b""
    answers = of_this_operation | {
        200: usual.ask(method, target, body),
        400: usual.malformed(method, target),
        401: guarded.ask(method, target, body),
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
