import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from fastapi import APIRouter, FastAPI
from fastapi.testclient import TestClient

from rungwise.core import UnavailableError, UserError
from rungwise.index import Index, Searcher
from rungwise.serving.routes.renewal import renewed_routes
from rungwise.serving.state import Current
from tests.colour_model import ColourModel, colour_pictures


def build(place: Path, colour: str) -> Index:
    data = colour_pictures(place / f"photos-{colour}", [colour])
    return Index.build(data, ColourModel(), place / "index", overwrite=True)


def asking(current: Current, answer: Callable[[], dict[str, object]]) -> TestClient:
    router = APIRouter(route_class=renewed_routes(current, 1e6))

    @router.get("/")
    async def asked() -> dict[str, object]:
        return answer()

    app = FastAPI()
    app.include_router(router)
    return TestClient(app)


@pytest.fixture
def current(tmp_path: Path) -> Current:
    return Current(Searcher(build(tmp_path, "red"), ColourModel()), seconds=1e6)


def test_a_request_that_fails_as_its_index_is_replaced_is_answered_from_the_new_one(
    current: Current, tmp_path: Path
) -> None:
    old = current.now()

    def answer() -> dict[str, object]:
        if current.now() is old:
            build(tmp_path, "green")
            raise UserError("/index/pictures.lance: damaged (not found)")
        return {"ids": current.now().newest}

    assert asking(current, answer).get("/").json() == {"ids": ["0-green"]}


@pytest.mark.parametrize("error", [UserError("filter: no such column"), UnavailableError("the store is away")])
def test_what_fails_of_itself_fails_once(current: Current, error: UserError) -> None:
    tries = [0]

    def answer() -> dict[str, object]:
        tries[0] += 1
        raise error

    with pytest.raises(type(error)):
        asking(current, answer).get("/")
    assert tries == [1]


def test_an_index_whose_files_are_gone_is_a_fault_of_the_server(
    current: Current, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who asked can correct nothing, and a program is to try again."""

    def gone(*_: object) -> dict[str, object]:
        raise UserError("/index/pictures: no store here;\nbuild it")

    def answer() -> dict[str, object]:
        (tmp_path / "index").rename(tmp_path / "moved")
        monkeypatch.setattr(type(current.now().index.picture_store), "get", gone)
        return gone()

    refused = asking(current, answer).get("/")
    assert refused.status_code == 503
    assert refused.headers["Retry-After"] == "5"
    assert refused.json()["detail"].startswith("the store of the index cannot be read; the index that stands there")
    assert "/index/pictures: no store here; build it" in caplog.messages


def test_a_mistake_is_one_too_while_the_index_of_before_is_served(current: Current, tmp_path: Path) -> None:
    def answer() -> dict[str, object]:
        (tmp_path / "index" / "index.json").write_text("{", encoding="utf-8")
        raise UserError("filter: no such column")

    with pytest.raises(UserError, match="no such column"):
        asking(current, answer).get("/")
    assert current.problem


def test_a_look_that_began_before_is_not_trusted(current: Current, tmp_path: Path) -> None:
    """It may have seen the index that was there before."""
    old, tries, look = current.now(), [0], current.look

    def first_of_before() -> object:
        tries[0] += 1
        if tries[0] > 1:
            return look()
        done: object = current_future()
        return done

    current.look = first_of_before  # type: ignore[method-assign, assignment]

    def answer() -> dict[str, object]:
        if current.now() is old:
            build(tmp_path, "green")
            raise UserError("damaged")
        return {"ids": current.now().newest}

    assert asking(current, answer).get("/").json() == {"ids": ["0-green"]}
    assert tries == [2]


def current_future() -> object:
    from concurrent.futures import Future

    done: Future[None] = Future()
    threading.Thread(target=done.set_result, args=(None,)).start()
    return done
