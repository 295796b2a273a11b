"""Also tests rungwise.serving.searches._search_process."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import pytest
from fastapi import HTTPException
from fastapi.testclient import TestClient

from rungwise.core import UserError
from rungwise.index import Index, Searcher
from rungwise.serving import SearchProcesses, ServerSettings, create_app
from rungwise.serving.searches import SearchParameters, SentAnswer, VersionedSearch, _processes, _search_process
from rungwise.serving.searches._search_process import _answer_all
from rungwise.serving.state import Current
from tests.colour_model import COLOURS, ColourModel, colour_pictures, colour_searcher, picture_bytes
from tests.serving.conftest import MIXED, PATIENT, TOKEN


class Thread:
    """Stands in for a process: it does the same, in a thread."""

    made: ClassVar[list[Thread]] = []

    def __init__(self, *_: object, env: dict[str, str], **__: object) -> None:
        asked, self._to = os.pipe()
        self._from, answers = os.pipe()
        self.stdin, self.stdout = os.fdopen(self._to, "wb"), os.fdopen(self._from, "rb")
        self.threads = env["OMP_NUM_THREADS"]
        self._end = answers
        files = os.fdopen(asked, "rb"), os.fdopen(answers, "wb")
        self._thread = threading.Thread(target=self._run, args=files, daemon=True)
        self._thread.start()
        self.made.append(self)

    def _run(self, *files: Any) -> None:
        with suppress(ValueError, OSError):  # it was ended from outside
            _answer_all(*files)

    def poll(self) -> int | None:
        return None if self._thread.is_alive() else 0

    def wait(self, timeout: float | None = None) -> int:
        self._thread.join()
        return 0

    def die(self) -> None:
        """End as a process that is killed: whoever reads gets nothing more."""
        os.dup2(os.open(os.devnull, os.O_RDONLY), self._from)


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[Thread]:
    monkeypatch.setattr(_processes.subprocess, "Popen", Thread)
    monkeypatch.setattr(Thread, "made", [])
    return Thread.made


@pytest.fixture
def index(tmp_path: Path) -> Index:
    return Index.build(colour_pictures(tmp_path / "photos", MIXED), ColourModel(), tmp_path / "index")


Asks = Callable[..., list[SentAnswer | Exception | None]]


@pytest.fixture
def ask(index: Index, threads: list[Thread]) -> Iterator[Asks]:
    """Asks one process, with the version that stands there now unless another is given."""
    with SearchProcesses(1, index.folder, colour_searcher, {}) as processes:

        def answers(*queries: str, version: str = "") -> list[SentAnswer | Exception | None]:
            version = version or Current(Searcher(Index.open(index.folder), ColourModel())).now().version
            return list(
                processes.answers(
                    [
                        VersionedSearch(version, SearchParameters(q=q, where=where))
                        for q, _, where in (one.partition(" where ") for one in queries)
                    ]
                )
            )

        answers.processes = processes  # type: ignore[attr-defined]
        yield answers


ADDRESSES = (
    "/search?q=red",
    "/search?q=blue&k=2&offset=1&fold=false",
    "/search?q=green&where=width > 1",
    '/search?q="red" - "blue"&words=off&end=false&diversity=0.5',
    "/search?q=gren&words=on",
    "/search?like=2-blue&unlike=0-red&k=3",
    "/search?q=red&like=1-green&like_weight=0.5",
)
REFUSED = ("/search?q=red&where=nowhere == 1", "/search?like=missing", "/search?q=red&k=0")


def test_processes_answer_what_the_server_answers(index: Index, threads: list[Thread]) -> None:
    settings = ServerSettings(limits=PATIENT)
    alone = TestClient(create_app(index, ColourModel(), settings=settings))
    with SearchProcesses(2, index.folder, colour_searcher, {}) as processes:
        kinds, given = [], processes.answers

        def noted(searches: list[VersionedSearch]) -> Iterator[SentAnswer | Exception | None]:
            for answer in given(searches):
                kinds.append(type(answer))
                yield answer

        processes.answers = noted  # type: ignore[method-assign, assignment]
        beside = TestClient(create_app(index, ColourModel(), settings=settings, processes=processes))
        for address in ADDRESSES:
            assert beside.get(address).content == alone.get(address).content
        assert kinds == [SentAnswer] * len(ADDRESSES)
        for address in REFUSED:
            mine, theirs = beside.get(address), alone.get(address)
            assert (mine.status_code, mine.content) == (theirs.status_code, theirs.content)
            assert mine.status_code in (404, 422)
        assert "rungwise_search_processes 2.0" in beside.get("/metrics").text
        assert 'rungwise_searches_total{outcome="found"}' in beside.get("/metrics").text


def test_pictures_that_were_sent_and_favourites_stay_with_the_server(index: Index, threads: list[Thread]) -> None:
    with SearchProcesses(1, index.folder, colour_searcher, {}) as processes:
        processes.answers = None  # type: ignore[method-assign, assignment]
        given = ServerSettings(token=TOKEN, limits=PATIENT)
        client = TestClient(
            create_app(index, ColourModel(), settings=given, processes=processes),
            headers={"authorization": f"Bearer {TOKEN}"},
        )
        sent = client.post("/pictures", content=picture_bytes(COLOURS["blue"])).json()["picture"]
        assert client.get("/search", params={"picture": sent}).json()["hits"][0]["id"] == "2-blue"
        assert client.get("/search?q=red&favourites=true").status_code == 200


def test_a_refused_search_leaves_the_others_their_answers(ask: Asks) -> None:
    found = ask("red", "green where nowhere == 1", "blue where width > 1")
    assert [type(one) for one in found] == [SentAnswer, type(None), SentAnswer]
    assert b"0-red" in found[0].content
    assert (found[0].nothing, found[0].has_words) == (False, True)


def test_a_change_of_the_index_is_followed(ask: Asks, index: Index, tmp_path: Path) -> None:
    before = Current(Searcher(index, ColourModel())).now().version
    (ahead,) = ask("yellow", version=before)
    Index.open(index.folder).remove(["4-yellow"])
    (after,) = ask("yellow")
    assert b"4-yellow" in ahead.content
    assert b"4-yellow" not in after.content
    (still,) = ask("yellow", version=before)  # a request that began before the change
    assert still == ahead
    assert ask("red", version="no such version") == [None]


def test_a_version_that_could_not_be_opened_is_looked_for_again(
    ask: Asks, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(_search_process, "monotonic", lambda: now[0])
    Index.open(index.folder).remove(["4-yellow"])
    with monkeypatch.context() as away:
        away.setattr(_search_process, "stamps", lambda _: 1 / 0)
        assert ask("red") == [None]
    assert ask("red") == [None]  # not with every search
    now[0] = 1e6
    assert isinstance(ask("red")[0], SentAnswer)


def test_another_model_is_loaded_if_it_was_asked_for(tmp_path: Path, threads: list[Thread]) -> None:
    data = colour_pictures(tmp_path / "photos", MIXED)
    for anew, answered in ((None, False), ({"fingerprint": "another" * 6}, True)):
        place = tmp_path / f"index-{answered}"
        index = Index.build(data, ColourModel(), place)
        with SearchProcesses(1, index.folder, colour_searcher, {}, options_anew=anew) as processes:
            other = Index.build(data, ColourModel("another" * 6), place, overwrite=True)
            version = Current(colour_searcher(other, "another" * 6)).now().version
            (found,) = processes.answers([VersionedSearch(version, SearchParameters(q="red"))])
            assert (found is not None) is answered


def test_one_that_ends_is_replaced_and_nobody_waits_for_ever(
    ask: Asks, threads: list[Thread], caplog: pytest.LogCaptureFixture
) -> None:
    threads[0].die()
    found = ask("red", "blue")
    assert isinstance(found[0], HTTPException)
    assert (found[0].status_code, found[1]) == (503, None)
    assert "another is started" in caplog.text
    for thread in threading.enumerate():
        if thread.name == _processes.STARTER_THREAD:
            thread.join()
    assert isinstance(ask("red")[0], SentAnswer)
    assert len(threads) == 2
    assert ask.processes.alive == 1  # type: ignore[attr-defined]


def test_while_none_is_free_the_server_searches(ask: Asks) -> None:
    ask.processes.close()  # type: ignore[attr-defined]
    ask.processes._idle.get()  # type: ignore[attr-defined]
    assert ask("red") == [None]


def test_cores_are_divided(index: Index, threads: list[Thread], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_processes, "cores", lambda: 8)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    with SearchProcesses(3, index.folder, colour_searcher, {}):
        assert [one.threads for one in threads] == ["2"] * 3


def test_one_that_does_not_start_says_why(index: Index, threads: list[Thread], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="processes must be at least 1, got 0"):
        SearchProcesses(0, index.folder, colour_searcher, {})
    with pytest.raises(UserError, match="did not start: .*another"):
        SearchProcesses(2, index.folder, colour_searcher, {"fingerprint": "another" * 6})
    with pytest.raises(UserError, match="did not start: .*nowhere"):
        SearchProcesses(1, tmp_path / "nowhere", colour_searcher, {})


def test_where_the_system_starts_no_other_the_server_searches_on(
    ask: Asks, threads: list[Thread], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(_processes.subprocess, "Popen", refuse)
    threads[0].die()
    assert isinstance(ask("red")[0], HTTPException)
    for thread in threading.enumerate():
        if thread.name == _processes.STARTER_THREAD:
            thread.join()
    assert ask("red") == [None]
    assert (
        "the system starts no process that searches (Cannot allocate memory); ask for fewer; 0 are left" in caplog.text
    )


@pytest.mark.slow
def test_real_processes_end_with_the_server_and_are_replaced_when_they_are_killed(index: Index) -> None:
    with SearchProcesses(2, index.folder, colour_searcher, {}) as processes:
        settings = ServerSettings(limits=PATIENT)
        client = TestClient(create_app(index, ColourModel(), settings=settings, processes=processes))
        alone = TestClient(create_app(index, ColourModel(), settings=settings))
        assert client.get("/search?q=red").content == alone.get("/search?q=red").content
        for one in list(processes._all):
            one._process.kill()
            one._process.wait()
        assert processes.alive == 0
        assert client.get("/search?q=red").content == alone.get("/search?q=red").content  # by the server itself
        for thread in threading.enumerate():
            if thread.name == _processes.STARTER_THREAD:
                thread.join()
        assert client.get("/search?q=red").content == alone.get("/search?q=red").content
        assert processes.alive == 2
        ended = [one._process for one in processes._all]
    assert [one.returncode for one in ended] == [0, 0]
