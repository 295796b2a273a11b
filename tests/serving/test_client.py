"""Also tests rungwise.serving."""

import http.client
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from fastapi import FastAPI, Response

from rungwise.calibration import BEYOND, RUNGS, QueryJudgement
from rungwise.core import UserError
from rungwise.index import Index
from rungwise.serving import Client, RankingOptions, ServerSettings, background, create_app
from rungwise.serving._client import AFTER_END
from tests.colour_model import COLOURS, ColourModel, colour_pictures, picture_bytes
from tests.serving.conftest import PATIENT, TOKEN
from tests.serving.wire import reached


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    folder = tmp_path_factory.mktemp("served")
    photos = colour_pictures(folder / "photos", ["red", "green", "blue"])
    return Index.build(photos, ColourModel(), folder / "index")


@pytest.fixture(scope="module")
def app(index: Index) -> FastAPI:
    return create_app(index, ColourModel(), settings=ServerSettings(token=TOKEN, limits=PATIENT))


@pytest.fixture
def client(app: FastAPI) -> Iterator[Client]:
    with reached(app) as address:
        yield Client(address, TOKEN)


def test_searching(client: Client, tmp_path: Path) -> None:
    assert client.about()["pictures"] == 3
    assert [hit["id"] for hit in client.search("red", 1)["hits"]] == ["0-red"]
    assert len(client.search(k=9)["hits"]) == 3
    assert len(client.search(k=9, offset=1)["hits"]) == 2
    assert (
        client.search("red", unlike=["0-red"], options=RankingOptions(fold=False, diversity=0.5, words="off"))["terms"][
            1
        ]["weight"]
        < 0
    )
    assert client.search("red", where="captions has 'a red square'")["hits"][0]["id"] == "0-red"
    assert [hit["id"] for hit in client.similar("0-red", everything=True)["hits"]]
    assert client.captions(item_id="2-blue", k=1)["captions"][0]["ids"] == ["2-blue"]


class OneFits:
    """The best hit of every query is relevant, and no other."""

    source, relevant_from, names, learnt, needs_texts = "one fits", 0.5, RUNGS, (), False

    def judge_hits(self, scores: np.ndarray, background: object, known: object = None) -> QueryJudgement:
        return QueryJudgement(np.linspace(1, 0, len(scores)), np.array([1, *[4] * (len(scores) - 1)]), 1, 1.0)


def test_a_search_stops_where_relevance_ends(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rungwise.index.cutoff._cutoff.calibration_of", lambda index: OneFits())
    plain = RankingOptions(words="off")
    answer = client.search("red", 2, options=plain)
    assert ([hit["id"] for hit in answer["hits"]], answer["more"]) == (["0-red"], False)
    assert (answer["end"]["shown"], answer["end"]["left_out"]) == (1, 1)
    every = client.search("red", 2, options=plain, everything=True)
    assert ([hit["rung"] for hit in every["hits"]], every["more"]) == ([1, 4], True)
    assert client.search("red", 1, options=plain)["more"] is False
    assert client.search("red", 2, offset=1, options=plain)["hits"] == []
    assert len(client.search("red", options=RankingOptions(end=False))["hits"]) == 3
    assert len(client.similar("0-red", everything=True)["hits"]) >= len(client.similar("0-red")["hits"])


def test_pictures_as_files_and_bytes_and_sent_ones(client: Client, tmp_path: Path) -> None:
    blue = picture_bytes(COLOURS["blue"])
    (tmp_path / "blue.png").write_bytes(blue)
    for picture in (tmp_path / "blue.png", blue, client.send(blue)):
        assert client.search(pictures=[picture], k=1)["hits"][0]["id"] == "2-blue"
        assert client.captions(picture, 1)["captions"][0]["text"] == "a blue square"
    assert client.picture("2-blue") == blue
    assert client.picture("2-blue", side=20)[:3] == b"\xff\xd8\xff"


@pytest.mark.parametrize("item_id", ["new", "a/b c?d#e%2F&=+", "日本", ".hidden", "../../etc/passwd", "\udcff"])
def test_adding_and_deleting(client: Client, index: Index, item_id: str) -> None:
    red = picture_bytes(COLOURS["red"], size=(20, 20))
    assert client.add(item_id, red, ["a new thing"], {"year": 2021, "tags": ["x", "y"]})["change"] == "added"
    item = client.item(item_id)
    assert (item["captions"], item["columns"]["year"], item["columns"]["tags"]) == (["a new thing"], 2021, ["x", "y"])
    assert client.picture(item_id) == red
    assert client.delete(item_id)["change"] == "removed"
    with pytest.raises(UserError, match="no picture with this id"):
        client.item(item_id)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda client: client.search("red", k=0), "k: "),
        (lambda client: client.search("red", where="year >="), "year"),
        (lambda client: client.item("nowhere"), "no picture with this id"),
        (lambda client: client.send(b"no picture"), "picture"),
        (lambda client: client.send(Path("nowhere.jpg")), "no such file"),
        (lambda client: Client(client.address, "wrong-horse").about(), "token"),
        (lambda client: Client(client.address + "static", TOKEN).about(), "Not Found"),
    ],
)
def test_every_mistake_is_one_line(client: Client, ask: Callable[[Client], object], message: str) -> None:
    with pytest.raises(UserError, match=message) as refused:
        ask(client)
    assert "\n" not in str(refused.value)
    assert TOKEN not in str(refused.value)


def test_where_nobody_listens_is_one_line() -> None:
    with pytest.raises(UserError, match="is the server running") as refused:
        Client("http://127.0.0.1:9/", TOKEN).about()
    assert "\n" not in str(refused.value)
    assert TOKEN not in str(refused.value)


def unsafe() -> ssl.SSLError:
    error = ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version number")
    error.reason = "WRONG_VERSION_NUMBER"
    return error


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (TimeoutError(), r"no answer within 0\.2 s"),
        (unsafe(), "no safe connection"),
        (http.client.IncompleteRead(b""), "cannot be asked"),
    ],
)
def test_what_goes_wrong_on_the_way_is_one_line(
    monkeypatch: pytest.MonkeyPatch, fault: Exception, message: str
) -> None:
    def fail(*_: object) -> None:
        raise fault

    monkeypatch.setattr(http.client.HTTPConnection, "request", fail)
    for scheme in ("http", "https"):
        with pytest.raises(UserError, match=message) as refused:
            Client(f"{scheme}://127.0.0.1:8000/", TOKEN, timeout=0.2).about()
        assert "\n" not in str(refused.value)


@pytest.mark.slow
def test_a_server_without_a_certificate_is_one_line(index: Index) -> None:
    with (
        background(index, ColourModel(), settings=ServerSettings(token=TOKEN)) as address,
        pytest.raises(UserError, match="no safe connection"),
    ):
        Client("https" + address.removeprefix("http")).about()


@pytest.mark.parametrize("address", ["", "localhost", "localhost:8000", "ftp://h/", "http://", "http://h:port/", "//h"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(UserError, match="no address of a server"):
        Client(address)


def stranger(content: bytes, status: int = 200) -> FastAPI:
    """A server of another kind."""
    app = FastAPI()
    app.mount("/", Response(content, status))
    return app


@pytest.mark.parametrize("content", [b"<html>", b"[1, 2]", b"[" * 100_000, b"\xff"])
def test_what_is_no_server_of_ours_is_said(content: bytes) -> None:
    with reached(stranger(content)) as address, pytest.raises(UserError, match="no server of this rungwise"):
        Client(address).about()


def test_a_refusal_of_a_stranger_cannot_steer_a_terminal() -> None:
    refusal = b'{"error": "bad\\u001b[31m\\nline"}'
    with reached(stranger(refusal, 500)) as address, pytest.raises(UserError) as refused:
        Client(address).about()
    assert "\x1b" not in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.slow
def test_silence_has_an_end() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        with pytest.raises(UserError, match=r"no answer within 0\.2 s"):
            Client(address, timeout=0.2).about()


def test_the_rung_after_the_end_is_that_of_the_server() -> None:
    assert AFTER_END == BEYOND


@pytest.mark.slow
def test_a_client_goes_without_the_libraries_of_the_server() -> None:
    program = (
        "import sys; from rungwise.serving import RankingOptions, Client, ServingLimits; Client('http://127.0.0.1:8000/');"
        "print([name for name in ('torch', 'fastapi', 'uvicorn', 'numpy', 'lancedb') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
