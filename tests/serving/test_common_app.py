"""What every application is behind: errors in one short line that tell nothing of where files lie."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from rungwise.core import UserError
from rungwise.index import Index
from rungwise.serving import ServerSettings, create_app, new_app, without_places
from rungwise.serving.access import HEADERS
from tests.colour_model import ColourModel, colour_pictures

PLACE = "xyzzy-where-things-lie"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """Of an index in a folder whose name nobody is to learn."""
    folder = tmp_path_factory.mktemp("here") / PLACE
    folder.mkdir()
    index = Index.build(colour_pictures(folder / "photos", ["red", "blue"]), ColourModel(), folder / "index")
    app = create_app(index, ColourModel(), only_here=True, kept=folder / "kept")
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client


@pytest.mark.parametrize(
    "broken", ["nothing", "index.json", "pictures/store.json", "captions/store.json", "grades.jsonl", "photos"]
)
def test_no_answer_tells_where_files_lie(client: TestClient, tmp_path: Path, broken: str) -> None:
    folder = tmp_path / PLACE
    folder.mkdir()
    index = Index.build(colour_pictures(folder / "photos", ["red", "blue"]), ColourModel(), folder / "index")
    app = create_app(index, ColourModel(), kept=folder / "kept", settings=ServerSettings(token="correct-horse"))
    grade = {"query": "red", "id": "0-red", "grade": "right"}
    red = (folder / "photos" / "0-red.png").read_bytes()
    with TestClient(app, raise_server_exceptions=False, headers={"Authorization": "Bearer correct-horse"}) as client:
        client.post("/grades", json=grade)
        path = folder / ("photos/0-red.png" if broken == "photos" else f"index/{broken}")
        if broken != "nothing":
            path.unlink(missing_ok=True)
            path.mkdir()
        for method, address, body in (
            *(
                ("POST", "/calibration", None),
                ("POST", "/grades", json.dumps(grade).encode()),
                ("GET", "/grades", None),
            ),
            *(("GET", "/about", None), ("GET", "/search?q=red", None), ("GET", "/similar?id=0-red", None)),
            *(("GET", "/items/0-red", None), ("GET", "/images/0-red", None), ("GET", "/images/0-red?thumb=64", None)),
            *(("POST", "/items?id=new", red), ("POST", "/items?id=new", b"no picture"), ("POST", "/pictures", b"none")),
            *(("GET", "/captions?id=0-red", None), ("GET", "/why?id=0-red&q=red", None), ("GET", "/ready", None)),
            *(("GET", "/sample", None), ("DELETE", "/items/new", None), ("DELETE", "/items/0-red", None)),
        ):
            headers = {"Content-Type": "application/json"} if address == "/grades" else {}
            answer = client.request(method, address, content=body, headers=headers)
            said = f"{answer.headers} {answer.content!r}"
            assert PLACE not in said, (address, said)
            if answer.status_code >= 400:
                assert list(answer.json()) == ["error"]


def test_too_few_grades_are_told_without_the_folder(client: TestClient) -> None:
    answer = client.post("/calibration")
    assert answer.status_code == 422
    assert answer.json()["error"].startswith("the index: 0 searches have graded hits")


@pytest.mark.parametrize("message", ["/tmp/{}/x.json: damaged", "cannot read '/tmp/{}' (no such file); name another"])
def test_an_error_of_another_file_goes_to_the_log(message: str, caplog: pytest.LogCaptureFixture) -> None:
    app = new_app("trial")

    @app.get("/trial")
    def trial() -> None:
        raise UserError(message.format(PLACE))

    answer = TestClient(app).get("/trial")
    assert (answer.status_code, PLACE in answer.text) == (422, False)
    assert "log says more" in answer.json()["error"]
    assert PLACE in caplog.text


def test_places_are_called_by_their_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    places = {Path("ix"): "the index"}
    for written in ("ix", str(tmp_path / "ix")):
        assert without_places(f"{written}: damaged", "", places) == "the index: damaged"
        assert without_places(f"{written}/a.json: damaged", "", places) == "the index/a.json: damaged"
    assert without_places("the mix of ix is fine", "", places) == "the mix of ix is fine"


@pytest.mark.parametrize(
    "where",
    [
        "x" * 1990 + " == 1",
        f"{'x' * 1990} ~ 1",
        f"year == {'x' * 1980}",
        f"year has {'9' * 300}",
        f"year == {'9' * 401}",
    ],
)
def test_what_was_sent_is_cut_in_every_message(client: TestClient, where: str) -> None:
    answer = client.get("/search", params={"q": "red", "where": where})
    assert answer.status_code == 422
    assert len(answer.json()["error"]) < 400


def test_a_message_without_end_is_cut_and_keeps_its_remedy() -> None:
    app = new_app("trial")

    @app.get("/trial")
    def trial() -> None:
        raise UserError(f"{'x' * 9000}; shorten it")

    answer = TestClient(app).get("/trial")
    assert len(answer.json()["error"]) < 1100
    assert answer.json()["error"].endswith("; shorten it")
    assert all(name in answer.headers for name in HEADERS)
