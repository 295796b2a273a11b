import io
import json
from collections.abc import Sequence

import numpy as np
import pytest
from fastapi.testclient import TestClient
from numpy.typing import NDArray

from rungwise.index import Index
from rungwise.serving import RequestLog, ServerSettings, create_app
from rungwise.serving.access import parse_tokens
from tests.colour_model import ColourModel

TOKEN = "correct-horse"


class Broken(ColourModel):
    def encode_text(self, texts: Sequence[str]) -> NDArray[np.float32]:
        raise ZeroDivisionError


@pytest.fixture
def index(shared_index: Index) -> Index:
    return shared_index


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_every_request_gets_one_line_without_token_and_words(index: Index) -> None:
    stream = io.StringIO()
    client = TestClient(create_app(index, ColourModel(), settings=ServerSettings(token=TOKEN, log=RequestLog(stream))))
    good = {"authorization": f"Bearer {TOKEN}"}
    client.get("/search?q=secret%20words", headers=good)
    client.get("/items/secret", headers=good)
    client.get("/search?q=secret", headers={"authorization": "Bearer wrong-secret"})
    client.get(f"/?token={TOKEN}&q=secret", follow_redirects=False)
    assert "secret" not in stream.getvalue()
    assert TOKEN not in stream.getvalue()
    written = lines(stream)
    assert [(line["method"], line["route"], line["status"]) for line in written] == [
        ("GET", "/search", 200),
        ("GET", "/items/{id}", 404),
        ("GET", "none", 401),
        ("GET", "none", 303),
    ]
    assert list(written[0]) == ["at", "method", "route", "status", "ms", "bytes", "client", "who"]
    assert written[0]["bytes"] > 100


def test_a_line_names_the_token_and_never_holds_it(index: Index) -> None:
    stream = io.StringIO()
    tokens = parse_tokens(f"ada read {TOKEN}", "here")
    app = create_app(index, ColourModel(), settings=ServerSettings(tokens=tokens, log=RequestLog(stream)))
    client = TestClient(app)
    good = {"authorization": f"Bearer {TOKEN}"}
    client.get("/search?q=red", headers=good)
    client.head("/search?q=red", headers=good)
    client.delete("/items/0-red", headers=good)
    client.get("/about", headers={"authorization": "Bearer wrong-horse"})
    assert [(line["who"], line["status"]) for line in lines(stream)] == [
        ("ada", 200),
        ("ada", 200),
        ("ada", 403),
        ("", 401),
    ]
    assert TOKEN not in stream.getvalue()


def test_what_was_asked_is_written_only_where_that_was_asked_for(index: Index) -> None:
    stream = io.StringIO()
    client = TestClient(create_app(index, ColourModel(), settings=ServerSettings(log=RequestLog(stream, queries=True))))
    client.get("/search", params={"q": "red\n{}\x1b[31m", "like": "0-red", "k": 3, "token": "never-this"})
    assert stream.getvalue().count("\n") == 1
    assert "\x1b" not in stream.getvalue()
    assert lines(stream)[0]["query"] == [["q", "red\n{}\x1b[31m"], ["like", "0-red"]]


def test_a_failure_of_ours_is_written_as_one(index: Index) -> None:
    stream = io.StringIO()
    app = create_app(index, Broken(), settings=ServerSettings(log=RequestLog(stream)))
    TestClient(app, raise_server_exceptions=False).get("/search?q=red")
    assert [(line["route"], line["status"]) for line in lines(stream)] == [("/search", 500)]
