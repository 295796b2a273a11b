"""Alive is not ready: a server whose store is away says so, and goes on answering what needs no store."""

import logging
import threading
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from rungwise.core.errors import UserError
from rungwise.index import Index, Searcher
from rungwise.serving import create_app, readiness
from rungwise.serving.current import Current
from tests.colour_model import ColourModel, colour_pictures


@pytest.fixture
def index(tmp_path: Path) -> Index:
    return Index.build(colour_pictures(tmp_path / "photos", ["red", "blue"]), ColourModel(), tmp_path / "index")


def test_a_server_whose_store_answers_is_ready(index: Index) -> None:
    answer = TestClient(create_app(index, ColourModel())).get("/ready")
    assert (answer.status_code, answer.json()) == (200, {"status": "ready", "pictures": 2})


def test_a_server_whose_store_is_away_lives_and_is_not_ready_until_it_is_back(
    index: Index, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)  # whatever level a library has given to all
    client = TestClient(create_app(index, ColourModel()))

    def away(*_: object) -> int:
        raise UserError("milvus://secret-host:19530: nobody answers")

    with monkeypatch.context() as broken:
        broken.setattr(type(index.picture_store), "count", away)
        answer = client.get("/ready")
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
        assert answer.json() == {"error": "the store of the index does not answer; the server's log says why"}
        assert "secret-host" in caplog.text
        assert client.get("/health").json()["status"] == "ok"
    assert client.get("/ready").status_code == 200


def test_a_store_that_hangs_is_asked_once_and_holds_up_nobody(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    app = FastAPI()
    app.include_router(readiness.routes(Current(Searcher(index, ColourModel())), seconds=0.05))
    asked, release = [], threading.Event()

    def hanging(*_: object) -> int:
        asked.append(1)
        release.wait(10)
        return 2

    monkeypatch.setattr(type(index.picture_store), "count", hanging)
    client = TestClient(app)
    try:
        for _ in range(3):
            answer = client.get("/ready")
            assert answer.status_code == 503
            assert "did not answer within 0.05 s" in answer.json()["detail"]
        assert len(asked) == 1
    finally:
        release.set()
