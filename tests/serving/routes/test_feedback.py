"""Grades that people give, over HTTP. Also tests rungwise.serving.access._bodies."""

import asyncio
import http.client
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from fastapi import HTTPException
from fastapi.testclient import TestClient

from rungwise.core import UserError
from rungwise.index import Index
from rungwise.serving import Client, RankingOptions, ServerSettings, ServingLimits, background, create_app
from rungwise.serving._server import _search_app
from rungwise.serving.access import json_body
from rungwise.serving.routes.feedback import Standing, changes_of
from tests.colour_model import COLOURS, ColourModel, colour_pictures
from tests.serving.access.test_uploads import never, request_of
from tests.serving.conftest import PATIENT
from tests.serving.loops import run
from tests.serving.wire import reached

MIXED = ["red", "green", "blue", "red", "yellow"] * 3


@pytest.fixture
def index(tmp_path: Path) -> Index:
    return Index.build(colour_pictures(tmp_path / "photos", MIXED), ColourModel(), tmp_path / "index")


@pytest.fixture
def client(index: Index) -> TestClient:
    return TestClient(create_app(index, ColourModel(), only_here=True))


@pytest.fixture(scope="module")
def local(shared_index: Index) -> Iterator[TestClient]:
    """Takes grades, for requests that are none."""
    with TestClient(
        create_app(shared_index, ColourModel(), only_here=True, settings=ServerSettings(limits=PATIENT))
    ) as client:
        yield client


def given(client: TestClient, query: str, item_id: str, grade: str | None) -> dict[str, object]:
    answer = client.post("/grades", json={"query": query, "id": item_id, "grade": grade})
    assert answer.status_code == 200, answer.text
    return answer.json()


def pairs(answer: dict[str, object]) -> list[tuple[str, str]]:
    return [(one["id"], one["grade"]) for one in answer["grades"]]


def test_a_grade_is_kept_replaced_and_taken_back(client: TestClient, index: Index) -> None:
    assert pairs(given(client, "red", "0-red", "right")) == [("0-red", "right")]
    assert pairs(given(client, " red ", "1-green", "wrong")) == [("1-green", "wrong"), ("0-red", "right")]
    assert pairs(given(client, "red", "0-red", "close")) == [("0-red", "close"), ("1-green", "wrong")]
    assert [(one.query, one.id, one.grade) for one in index.grades()] == [
        ("red", "1-green", "wrong"),
        ("red", "0-red", "close"),
    ]
    assert pairs(given(client, "red", "0-red", None)) == [("1-green", "wrong")]


def test_people_with_names_grade_apart(client: TestClient, index: Index) -> None:
    given(client, "red", "0-red", "right")
    for who, grade in (("Ada", "close"), (" Bo ", "wrong"), ("Ada", None)):
        sent = {"query": "red", "id": "0-red", "grade": grade, "who": who}
        assert client.post("/grades", json=sent).status_code == 200
    assert [(one.who, one.grade) for one in index.grades()] == [("", "right"), ("Bo", "wrong")]
    shown = client.get("/grades", params={"q": "red"}).json()["grades"]
    assert [(one["who"], one["grade"]) for one in shown] == [("Bo", "wrong"), ("", "right")]


def test_grades_are_asked_for_by_query_and_in_pages(client: TestClient) -> None:
    for query in ("red", "green"):
        for place in range(3):
            given(client, query, f"{place}-{MIXED[place]}", "right")
    every = client.get("/grades").json()
    assert (len(every["grades"]), every["queries"], every["needed"], every["more"]) == (6, 2, 20, False)
    assert {one["query"] for one in client.get("/grades", params={"q": "green"}).json()["grades"]} == {"green"}
    pages = [client.get("/grades", params={"k": 4, "offset": offset}).json() for offset in (0, 4)]
    assert [page["more"] for page in pages] == [True, False]
    assert [one for page in pages for one in page["grades"]] == every["grades"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"[" * 10_000,
        b"\xff",
        {"query": "red", "id": "0-red"},
        {"query": "red", "id": "0-red", "grade": "nice"},
        {"query": "red", "id": "0-red", "grade": 1},
        {"query": "red", "id": "0-red", "grade": ["right"]},
        {"query": " ", "id": "0-red", "grade": "right"},
        {"query": "a" * 2001, "id": "0-red", "grade": "right"},
        {"query": "red", "id": "", "grade": "right"},
        {"query": "red", "id": "0-red", "grade": "right", "more": 1},
        {"query": "red", "id": "0-red", "grade": "right", "who": 1},
        {"query": "red", "id": "0-red", "grade": "right", "who": None},
        {"query": "red", "id": "0-red", "grade": "right", "who": "a" * 81},
        {"query": "red", "id": "0-red", "grade": "right", "who": "\u3164"},
        {"query": "red", "id": "0-red", "grade": "right", "who": "\u200b"},
    ],
)
def test_what_is_no_grade_is_one_line(local: TestClient, shared_index: Index, body: bytes | dict[str, object]) -> None:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = local.post("/grades", content=content, headers={"Content-Type": "application/json"})
    assert (answer.status_code, list(answer.json())) == (422, ["error"])
    assert "\n" not in answer.json()["error"]
    assert not len(shared_index.grades())


def test_a_form_of_another_site_is_no_grade(local: TestClient, shared_index: Index) -> None:
    grade = json.dumps({"query": "red", "id": "0-red", "grade": "right"})
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        assert local.post("/grades", content=grade, headers={"Content-Type": kind}).status_code == 422
    kind = {"Content-Type": "application/json"}
    for elsewhere in ({"Origin": "http://elsewhere.example"}, {"Sec-Fetch-Site": "cross-site"}):
        assert local.post("/grades", content=grade, headers=kind | elsewhere).status_code == 403
        assert local.post("/calibration", headers=elsewhere).status_code == 403
    assert not len(shared_index.grades())


def test_a_body_has_an_end(local: TestClient) -> None:
    answer = local.post("/grades", content=b" " * 20_000, headers={"Content-Type": "application/json"})
    assert answer.status_code == 413


def test_pictures_that_are_not_there_are_404(local: TestClient) -> None:
    assert local.post("/grades", json={"query": "red", "id": "none", "grade": "right"}).status_code == 404


def test_without_a_token_only_this_machine_may_grade(index: Index) -> None:
    open_to_all = TestClient(create_app(index, ColourModel()))
    assert not open_to_all.get("/about").json()["gradable"]
    grade = {"query": "red", "id": "0-red", "grade": "right"}
    for answer in (
        open_to_all.post("/grades", json=grade),
        open_to_all.get("/grades"),
        open_to_all.post("/calibration"),
    ):
        assert answer.status_code == 403
        assert "token" in answer.json()["error"]
    assert not len(index.grades())
    with_token = TestClient(
        create_app(index, ColourModel(), settings=ServerSettings(token="correct-horse")),
        headers={"Authorization": "Bearer correct-horse"},
    )
    assert with_token.get("/about").json()["gradable"]
    assert with_token.post("/grades", json=grade).status_code == 200


@pytest.mark.parametrize(
    ("bound", "names", "gradable"),
    [("127.0.0.1", [], True), ("127.0.0.1", ["pictures.example"], False), ("0.0.0.0", [], False)],
)
def test_a_server_knows_whether_others_reach_it(
    shared_index: Index, bound: str, names: list[str], gradable: bool
) -> None:
    given = ServerSettings(allowed_hosts=names, limits=PATIENT)
    make = _search_app(shared_index, ColourModel(), given, None, None, None, None)
    assert (
        TestClient(make(replace(given, allowed_hosts=["testserver"]), bound)).get("/about").json()["gradable"]
        is gradable
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "gradable"),
    [({}, True), ({"allowed_hosts": ["pictures.example"]}, False), ({"host": "0.0.0.0", "open_to_all": True}, False)],
)
def test_a_server_with_a_socket_knows_whether_others_reach_it(
    shared_index: Index, settings: dict[str, object], gradable: bool
) -> None:
    with background(shared_index, ColourModel(), settings=ServerSettings(**settings)) as address:
        assert Client(address).about()["gradable"] is gradable


@pytest.fixture
def server(index: Index) -> Iterator[Client]:
    with reached(create_app(index, ColourModel(), only_here=True, settings=ServerSettings(limits=PATIENT))) as address:
        yield Client(address)


def test_the_client_grades_and_calibrates(server: Client, index: Index) -> None:
    with pytest.raises(UserError, match="20"):
        server.calibrate()
    for number in range(24):
        query = f"{list(COLOURS)[number % 4]} number {number}"
        for hit in server.search(query, 15, options=RankingOptions(fold=False, end=False))["hits"]:
            server.grade(query, hit["id"], "right" if query.split()[0] in hit["id"] else "wrong")
    assert server.grades(k=1)["queries"] == 24
    learnt = server.calibrate()
    assert learnt["queries"] == 24
    assert all(line.endswith(".") for line in learnt["changes"])
    assert index.folder is not None
    assert Index.open(index.folder).calibration is not None
    assert server.search("red")["end"]["source"] == learnt["source"]
    assert server.about()["index_version"] == learnt["index_version"]
    assert server.grade("red number 0", "0-red", None)["queries"] == 24
    assert server.grade("red number 0", "0-red", "right", "Ada")["grades"][0]["who"] == "Ada"


def test_what_changed_is_said_in_words() -> None:
    assert changes_of(Standing(0, 0, 0, 0), Standing(0, 0, 0, 0)) == ()
    assert changes_of(Standing(1, 0, 0, 0), Standing(1, 1, 0, 0)) == (
        "1 of 1 picture that was called right or close is shown before the end; it was 0.",
    )


def test_a_slow_grade_is_given_up() -> None:
    async def ask() -> None:
        with pytest.raises(HTTPException, match="a grade has not come within 60 s") as refused:
            await json_body(request_of(never(), kind="application/json"), 60, "a grade", ["id"])
        assert (refused.value.status_code, refused.value.headers) == (408, {"Connection": "close"})
        assert asyncio.get_running_loop().time() == pytest.approx(60)

    run(ask())


@pytest.mark.slow
def test_a_slow_grade_is_given_up_by_a_server(shared_index: Index) -> None:
    with background(
        shared_index, ColourModel(), settings=ServerSettings(limits=ServingLimits(body_seconds=0.2))
    ) as address:
        connection = http.client.HTTPConnection(address.split("/")[2])
        connection.putrequest("POST", "/grades")
        connection.putheader("Content-Type", "application/json")
        connection.putheader("Content-Length", "50")
        connection.endheaders(b'{"query"')
        assert connection.getresponse().status == 408
        connection.close()
