"""Alive is not ready: a server whose store is away says so, and goes on answering what needs no store."""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from rungwise.core import UnavailableError, UserError
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
    assert (answer.status_code, answer.json()) == (200, {"status": "ready", "pictures": 5, "problem": None})


def test_a_server_whose_store_is_away_lives_and_is_not_ready_until_it_is_back(
    index: Index, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)  # whatever level a library has given to all
    client = TestClient(patient_app(index, ColourModel()))

    def away(*_: object) -> int:
        raise UnavailableError("milvus://secret-host:19530: nobody answers")

    with monkeypatch.context() as broken:
        broken.setattr(type(index.picture_store), "count", away)
        answer = client.get("/ready")
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
        assert "the store of the index did not answer within" in answer.json()["error"]
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
            assert "did not answer within 8e-10 s" in answer.json()["detail"]
        begun.wait()
        assert len(asked) == 1
    finally:
        release.set()


def test_a_store_that_cannot_be_read_says_so_although_it_knows_its_number(
    index: Index, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)

    def gone(*_: object) -> dict[str, object]:
        raise UserError("/srv/index/pictures.lance: damaged (not found)")

    client = TestClient(patient_app(index, ColourModel()))
    monkeypatch.setattr(type(index.picture_store), "get", gone)
    answer = client.get("/ready")
    assert answer.status_code == 503
    assert answer.json() == {"error": "the store of the index cannot be read; the server's log says why"}
    assert "/srv/index" in caplog.text


def test_a_store_that_answers_one_of_two_questions_is_slow(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, release = threading.Event(), threading.Event()

    def slow(*_: object) -> dict[str, object]:
        begun.set()
        release.wait()
        return {}

    app = FastAPI()
    app.include_router(readiness.routes(Current(Searcher(index, ColourModel())), seconds=0.001))
    monkeypatch.setattr(type(index.picture_store), "get", slow)
    client = TestClient(app)
    try:
        client.get("/ready")
        begun.wait()
        said = client.get("/ready").json()["detail"]
        assert said.startswith("the store of the index did not answer within 0.0008 s; it is slow: it took")
    finally:
        release.set()
