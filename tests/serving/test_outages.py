"""Tests of no module: every route while the store hangs, refuses, is slow, or another model's index took the place."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from httpx import Response

from rungwise.core import UnavailableError
from rungwise.index import Index
from rungwise.serving import ServerSettings, create_app
from rungwise.serving import _app as app
from rungwise.serving.state import Current, _served_index
from tests.colour_model import COLOURS, ColourModel, colour_pictures, picture_bytes
from tests.serving.conftest import MIXED, PATIENT, TOKEN

WAYS = ("hung", "refused", "slow", "another model")
LIVE = ("/health", "/metrics", "/about", "/", "/docs", "/openapi.json", "/reference/reference.js", "/static/app.js")
"""Routes that answer whatever the store does."""
READING = (
    "/search?q=red",
    "/search",
    "/similar?id=0-red",
    "/captions?id=0-red",
    "/sample?by=newest",
    "/items/1-green",
    "/images/1-green",
)
"""Routes that need the store."""
SECRET = "milvus://10.0.0.7:19530/pets"


class Gate:
    """What stands before a store: it lets calls through, holds them until it opens, or refuses them."""

    def __init__(self) -> None:
        self.how = ""
        self.opened, self.reached = threading.Event(), threading.Semaphore(0)

    def passed(self) -> None:
        if self.how == "refused":
            raise UnavailableError(f"{SECRET}: nobody answers", refused=True)
        if self.how in ("hung", "slow"):
            self.reached.release()
            self.opened.wait()


class FarStore:
    """A store behind a gate."""

    def __init__(self, store: Any, gate: Gate) -> None:
        self._store, self._gate = store, gate

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if not callable(found) or name == "similarity":
            return found

        def called(*given: Any, **named: Any) -> Any:
            self._gate.passed()
            return found(*given, **named)

        return called


class Served:
    """An application whose store can be away, with a client that has the token."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, **limits: float) -> None:
        self.folder, self.gate = folder, Gate()
        index = Index.build(colour_pictures(folder / "photos", MIXED), ColourModel(), folder / "index")
        for name in ("picture_store", "caption_store"):
            setattr(index, name, FarStore(getattr(index, name), self.gate))
        stamps = _served_index.stamps

        def far_stamps(place: Path) -> Any:
            self.gate.passed()
            return stamps(place)

        monkeypatch.setattr(_served_index, "stamps", far_stamps)
        monkeypatch.setattr(app, "Current", partial(Current, seconds=0))
        settings = ServerSettings(token=TOKEN, limits=replace(PATIENT, **limits))
        application = create_app(index, ColourModel(), settings=settings, kept=folder / "sent")
        self.client = TestClient(application, headers={"authorization": f"Bearer {TOKEN}"})

    @contextmanager
    def away(self, how: str) -> Iterator[None]:
        """The store is away in one of the ways while the block runs."""
        if how == "another model":
            other = ColourModel(fingerprint="another" * 6)
            Index.build(colour_pictures(self.folder / "others", ["blue"]), other, self.folder / "index", overwrite=True)
            while self.client.get("/about").json()["problem"] is None:
                pass
        self.gate.how = how
        try:
            yield
        finally:
            self.gate.how = ""
            self.gate.opened.set()


@pytest.fixture
def serving(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Served]]:
    made: list[Served] = []

    def serve(**limits: float) -> Served:
        made.append(Served(tmp_path, monkeypatch, **limits))
        made[-1].client.__enter__()
        return made[-1]

    yield serve
    for one in made:
        one.gate.opened.set()
        one.client.__exit__(None, None, None)


def refusal(answer: Response, status: int = 503) -> str:
    assert (answer.status_code, list(answer.json())) == (status, ["error"])
    message: str = answer.json()["error"]
    assert "\n" not in message
    assert SECRET not in message
    return message


@pytest.mark.parametrize("how", WAYS)
def test_what_needs_no_store_is_answered_whatever_the_store_does(serving: Callable[..., Served], how: str) -> None:
    """Also while others wait for the store, more of them than there are threads."""
    served = serving()
    with ThreadPoolExecutor(8) as others, served.away(how):
        waiting = [others.submit(served.client.get, one) for one in READING]
        if how in ("hung", "slow"):
            for _ in range(4):  # a look, a search, and two that read
                served.gate.reached.acquire()
        for address in LIVE:
            assert served.client.get(address).status_code == 200, address
        about, health = (served.client.get(one).json() for one in ("/about", "/health"))
        assert (about["pictures"], len(about["newest"]), health) == (5, 5, {"status": "ok", "pictures": 5})
        served.gate.opened.set()  # a slow one answers in the end, and so does one that hung
        expected = 503 if how == "refused" else 200
        assert {one.result().status_code for one in waiting} == {expected}


@pytest.mark.parametrize("address", READING)
@pytest.mark.parametrize("how", ["hung", "refused"])
def test_what_needs_the_store_is_refused_within_its_limit(
    serving: Callable[..., Served], how: str, address: str
) -> None:
    served = serving(store_seconds=60.0 if how == "refused" else 1e-3)
    with served.away(how):
        answer = served.client.get(address)
    said = refusal(answer)
    assert answer.headers["Retry-After"] == "5"
    if how == "refused":
        assert said == "the store of the index does not answer; try again in a moment"
    else:
        assert said in (
            "the store of the index did not answer in time; try again in a moment",
            "there is too much to do; try again in a moment",
        )


@pytest.mark.parametrize("how", ["hung", "refused"])
def test_changes_are_refused_within_their_limit(serving: Callable[..., Served], how: str) -> None:
    served = serving(store_seconds=0.5)
    with served.away(how):
        refusal(served.client.delete("/items/1-green"))


@pytest.mark.parametrize("how", ["refused", "another model"])
def test_a_picture_can_be_sent_while_the_store_is_away(serving: Callable[..., Served], how: str) -> None:
    served = serving()
    with served.away(how):
        sent = served.client.post("/pictures", content=picture_bytes(COLOURS["red"]))
        assert served.client.get(f"/pictures/{sent.json()['picture']}").status_code == 200


def test_readiness_says_why_not(serving: Callable[..., Served]) -> None:
    served = serving(ready_seconds=0.01)
    with served.away("hung"):
        said = refusal(served.client.get("/ready"))
        assert said == "the store of the index did not answer within 0.008 s; it hangs or is slow"


def test_readiness_of_a_store_that_takes_no_connections(serving: Callable[..., Served]) -> None:
    served = serving()
    with served.away("refused"):
        said = refusal(served.client.get("/ready"))
        assert said == "the store of the index takes no connections; the server's log says why"
    assert served.client.get("/ready").json() == {"status": "ready", "pictures": 5, "problem": None}


def test_with_an_index_of_another_model_it_is_ready_and_says_so(serving: Callable[..., Served]) -> None:
    served = serving()
    with served.away("another model"):
        ready = served.client.get("/ready")
        assert (ready.status_code, ready.json()["pictures"]) == (200, 5)
        assert ready.json()["problem"] == served.client.get("/about").json()["problem"]
        assert "another model built the index" in ready.json()["problem"]
        assert "--reload" in ready.json()["problem"]
        assert [hit["id"] for hit in served.client.get("/search?q=red&fold=false").json()["hits"]][:1] == ["0-red"]


@pytest.mark.slow
def test_a_real_milvus_that_is_stopped_and_then_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("milvus", reason="a server to try comes with: pip install milvus")
    from tests.milvus_server import local_milvus

    monkeypatch.setenv("MILVUS_PATIENCE", "2")
    monkeypatch.setattr(app, "Current", partial(Current, seconds=0))
    with local_milvus(tmp_path / "milvus") as server:
        place = Path(f"{server.address}/colours")
        index = Index.build(colour_pictures(tmp_path / "photos", MIXED), ColourModel(), place, store="auto")
        settings = ServerSettings(limits=replace(PATIENT, ready_seconds=5.0))
        with TestClient(create_app(index, ColourModel(), settings=settings, kept=tmp_path / "sent")) as client:
            assert client.get("/ready").json()["status"] == "ready"
            os.kill(server.process, signal.SIGSTOP)
            try:
                reasons = ("it hangs or is slow",)
                _answers_without(client, reasons)
            finally:
                os.kill(server.process, signal.SIGCONT)
            os.kill(server.process, signal.SIGKILL)
            _answers_without(client, ("takes no connections", *reasons))


def _answers_without(client: TestClient, reasons: tuple[str, ...]) -> None:
    for address in LIVE:
        assert client.get(address).status_code == 200, address
    for address in READING:
        refusal(client.get(address))
    ready = refusal(client.get("/ready"))
    assert any(reason in ready for reason in reasons)
