"""What the document of the interface says holds for whatever is asked, and every status that it names is met.

Requests are drawn by schemathesis from the document itself; those for a certain status are written here.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse
from socket import create_connection
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

TOKEN = "correct-horse"
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


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_every_answer_is_as_documented(documented: BaseSchema, method: str, path: str, mode: GenerationMode) -> None:
    if path == "/api/status" and mode is GenerationMode.NEGATIVE:
        pytest.skip("it takes no parameters, so none can be wrong")
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
    content: bytes


def read(response: HTTPResponse) -> Answer:
    return Answer(response.status, response.getheader("content-type", ""), response.read())


class Server:
    """A server over real sockets, and one request after the other."""

    def __init__(self, index: Index, stack: ExitStack, token: str | None = None, **limits: float) -> None:
        address = stack.enter_context(background(index, ColourModel(), token=token, limits=ServingLimits(**limits)))
        place = urlsplit(address)
        self.place = (place.hostname, place.port)

    def ask(self, method: str, target: str, body: bytes = b"", headers: Mapping[str, str] | None = None) -> Answer:
        connection = HTTPConnection(*self.place, timeout=60)
        try:
            connection.request(method, target, body or None, headers or {})
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
    def uploading(self) -> Iterator[HTTPResponse]:
        """A picture of which half was sent, and the answer to come."""
        with create_connection(self.place, timeout=60) as connection:
            host = f"{self.place[0]}:{self.place[1]}"
            head = f"POST {UPLOAD[1]} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(RED)}\r\n\r\n"
            connection.sendall(head.encode() + RED[: len(RED) // 2])
            yield HTTPResponse(connection)
