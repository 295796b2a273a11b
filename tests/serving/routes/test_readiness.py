"""Alive is not ready: a server whose store is away says so, and goes on answering what needs no store."""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from rungwise.core import UserError
from rungwise.index import Index, Searcher
from rungwise.serving.routes import readiness
from rungwise.serving.state import Current
from tests.colour_model import ColourModel
from tests.serving.conftest import patient_app


@pytest.fixture
def index(shared_index: Index) -> Index:
    return shared_index


def test_a_server_whose_store_answers_is_ready(index: Index) -> None:
    answer = TestClient(patient_app(index, ColourModel())).get("/ready")
    assert (answer.status_code, answer.json()) == (200, {"status": "ready", "pictures": 5})


def test_a_server_whose_store_is_away_lives_and_is_not_ready_until_it_is_back(
    index: Index, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)  # whatever level a library has given to all
    client = TestClient(patient_app(index, ColourModel()))

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
    asked: list[object] = []
    begun, release = threading.Event(), threading.Event()

    class Noted(ThreadPoolExecutor):
        def submit(self, work: Callable[..., object], /, *given: object, **named: object) -> Future[object]:
            asked.append(work)
            return super().submit(work, *given, **named)

    def hanging(*_: object) -> int:
        begun.set()
        release.wait()
        return 2

    monkeypatch.setattr(readiness, "thread_pool", lambda threads, name: Noted(threads, name))
    app = FastAPI()
    app.include_router(readiness.routes(Current(Searcher(index, ColourModel())), seconds=1e-9))
    monkeypatch.setattr(type(index.picture_store), "count", hanging)
    client = TestClient(app)
    try:
        for _ in range(3):
            answer = client.get("/ready")
            assert answer.status_code == 503
            assert "did not answer within 1e-09 s" in answer.json()["detail"]
        begun.wait()
        assert len(asked) == 1
    finally:
        release.set()
