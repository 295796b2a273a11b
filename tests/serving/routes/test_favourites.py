"""Favourites and saved searches, over HTTP."""

from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from rungwise.core import UserError
from rungwise.index import Index
from rungwise.index.layout import read_favourites
from rungwise.serving import Client, RankingOptions, ServerSettings, create_app
from tests.colour_model import ColourModel, colour_pictures
from tests.serving.conftest import TOKEN
from tests.serving.wire import reached


@pytest.fixture
def index(tmp_path: Path) -> Index:
    photos = colour_pictures(tmp_path / "photos", ["red", "green", "blue", "yellow"])
    return Index.build(photos, ColourModel(), tmp_path / "index")


@pytest.fixture
def client(index: Index) -> TestClient:
    return TestClient(create_app(index, ColourModel(), only_here=True))


def ids(answer: dict[str, list[dict[str, str]]]) -> list[str]:
    return [one["id"] for one in answer["favourites"]]


def hits(client: TestClient, **asked: str) -> list[str]:
    answer = client.get("/search", params={"favourites": "true", **asked})
    assert answer.status_code == 200, answer.text
    return [one["id"] for one in answer.json()["hits"]]


def test_favourites_are_marked_listed_and_unmarked(client: TestClient, index: Index) -> None:
    assert client.get("/favourites").json() == {"favourites": []}
    assert hits(client) == []
    assert hits(client, q="red") == []
    for one in ("2-blue", "0-red"):
        assert client.put(f"/favourites/{one}").status_code == 200
    assert ids(client.get("/favourites").json()) == ["0-red", "2-blue"]
    assert [one.id for one in read_favourites(index.folder).pictures] == ["2-blue", "0-red"]
    assert ids(client.delete("/favourites/2-blue").json()) == ["0-red"]


def test_favourites_alone_are_browsed_searched_and_filtered(client: TestClient) -> None:
    for one in ("2-blue", "0-red", "3-yellow"):
        client.put(f"/favourites/{one}")
    assert hits(client) == ["3-yellow", "0-red", "2-blue"]
    assert hits(client, k="1", offset="1") == ["0-red"]
    assert client.get("/search?favourites=true&k=2").json()["more"]
    assert hits(client, q="green", end="false")[0] in ("2-blue", "0-red", "3-yellow")
    assert "1-green" not in hits(client, q="green", end="false")
    assert hits(client, where="captions has 'a red square'") == ["0-red"]
    assert hits(client, q="red", where="captions has 'a red square'", end="false") == ["0-red"]
    assert "filter lets through" in client.get("/search?favourites=true&where=width > 0").json()["reading"]


def test_a_favourite_whose_picture_is_gone_is_not_shown_and_can_be_unmarked(client: TestClient, index: Index) -> None:
    client.put("/favourites/0-red")
    Index.open(index.folder).remove(["0-red"])
    app = TestClient(create_app(Index.open(index.folder), ColourModel(), only_here=True))
    assert hits(app) == []
    assert ids(app.get("/favourites").json()) == ["0-red"]
    assert app.put("/favourites/0-red").status_code == 404
    assert ids(app.delete("/favourites/0-red").json()) == []


def test_what_is_kept_in_a_folder_that_is_away_is_not_said_to_be_nothing(client: TestClient, index: Index) -> None:
    client.put("/favourites/0-red")
    client.put("/searches/summer", json={"q": "sea", "where": ""})
    client.post("/grades", json={"query": "red", "id": "0-red", "grade": "right"})
    away = index.folder.rename(index.folder.with_name("away"))
    asked = [client.get(path) for path in ("/favourites", "/searches", "/grades?q=red", "/search?favourites=true")]
    asked += [client.put("/favourites/1-green"), client.delete("/searches/summer")]
    assert [(one.status_code, one.headers.get("Retry-After")) for one in asked] == [(503, "5")] * len(asked)
    away.rename(index.folder)
    assert ids(client.get("/favourites").json()) == hits(client) == ["0-red"]


def test_searches_are_saved_under_a_name_and_forgotten(client: TestClient) -> None:
    for name, query, where in (("summer", "a beach", ""), ("Reds", " red ", "width > 10"), ("summer", "sea", "")):
        assert client.put(f"/searches/{name}", json={"q": query, "where": where}).status_code == 200
    found = client.get("/searches").json()["searches"]
    assert [(one["name"], one["q"], one["where"]) for one in found] == [
        ("Reds", "red", "width > 10"),
        ("summer", "sea", ""),
    ]
    assert [one["name"] for one in client.delete("/searches/summer").json()["searches"]] == ["Reds"]
    assert client.delete("/searches/summer").status_code == 404


@pytest.mark.parametrize(
    ("name", "asked", "message"),
    [
        ("a", {"q": "", "where": " "}, "neither words nor a filter"),
        ("a", {"q": "red", "where": "width >"}, "width"),
        ("a", {"q": 7, "where": ""}, "are texts"),
        ("a", {"q": "red"}, "lacks where"),
        ("%20", {"q": "red", "where": ""}, "name of a search"),
        ("a" * 101, {"q": "red", "where": ""}, "101 characters"),
    ],
)
def test_what_is_no_search_is_said(client: TestClient, name: str, asked: dict[str, object], message: str) -> None:
    answer = client.put(f"/searches/{name}", json=asked)
    assert answer.status_code == 422
    assert message in answer.json()["error"]
    assert client.get("/searches").json() == {"searches": []}


def test_without_a_token_others_read_and_change_nothing_and_are_told_why(index: Index) -> None:
    client = TestClient(create_app(index, ColourModel()))
    reason = client.get("/about").json()["not_kept"]
    assert "no token" in reason
    for answer in (
        client.put("/favourites/0-red"),
        client.delete("/favourites/0-red"),
        client.put("/searches/a", json={"q": "red", "where": ""}),
        client.delete("/searches/a"),
    ):
        assert answer.status_code == 403
        assert reason in answer.json()["error"]
    assert client.get("/favourites").status_code == client.get("/searches").status_code == 200


def test_an_index_in_no_folder_keeps_none_and_says_so(index: Index) -> None:
    loose = Index(index.manifest, index.picture_store, index.caption_store)
    client = TestClient(create_app(loose, ColourModel(), only_here=True))
    assert client.get("/about").json()["not_kept"] == "this index is in no folder"
    assert client.put("/favourites/0-red").status_code == 403
    assert hits(client) == []


def test_another_client_with_the_token_sees_the_same(index: Index) -> None:
    app = create_app(index, ColourModel(), settings=ServerSettings(token=TOKEN))
    assert TestClient(app).put("/favourites/0-red").status_code == 401
    with reached(app) as address:
        first, second = Client(address, TOKEN), Client(address, TOKEN)
        assert first.about()["not_kept"] == ""
        first.mark("0-red")
        first.save_search("réd things", "red", "width > 10")
        assert [one["id"] for one in second.favourites()["favourites"]] == ["0-red"]
        assert [one["name"] for one in second.searches()["searches"]] == ["réd things"]
        found = second.search(options=RankingOptions(favourites=True))["hits"]
        assert [one["id"] for one in found] == ["0-red"]
        assert second.forget_search("réd things") == {"searches": []}
        assert second.mark("0-red", favourite=False) == {"favourites": []}
        with pytest.raises(UserError, match="no picture with this id"):
            first.mark("nowhere")
