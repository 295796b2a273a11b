"""Queries that a server keeps, over HTTP."""

from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from rungwise.core import UserError
from rungwise.index import Index
from rungwise.serving import Client, ServerSettings, background, create_app
from tests.colour_model import ColourModel, colour_pictures
from tests.serving.conftest import TOKEN


@pytest.fixture
def index(tmp_path: Path) -> Index:
    photos = colour_pictures(tmp_path / "photos", ["red", "green", "blue", "yellow"])
    return Index.build(photos, ColourModel(), tmp_path / "index")


KEEPING = ServerSettings(keep_queries=30)


def test_texts_that_a_person_typed_are_kept_and_nothing_else(index: Index) -> None:
    with TestClient(create_app(index, ColourModel(), settings=KEEPING, only_here=True)) as client:
        assert client.get("/about").json()["queries_kept_days"] == 30
        for asked in (
            "/search?q=red",
            "/search?q=red",
            "/search?q=green&where=width > 0",
            "/search?q=blue&offset=1",
            "/search?q=blue&typed=false",
            "/search?q=blue&like=0-red",
            "/search?like=0-red",
            "/search",
            "/similar?id=0-red",
            "/captions?id=0-red",
        ):
            assert client.get(asked).status_code == 200, asked
        assert client.get("/search?q=yellow&where=none == 1").status_code == 422
        assert index.asked_queries() == {}
    found = index.asked_queries()
    assert found == {"red": 1, "green": 1}
    content = (index.folder / "queries.jsonl").read_text(encoding="ascii")
    assert "testclient" not in content
    assert "width" not in content


def test_nothing_is_kept_unless_asked_for(index: Index) -> None:
    with TestClient(create_app(index, ColourModel(), only_here=True)) as client:
        client.get("/search?q=red")
        assert client.get("/about").json()["queries_kept_days"] == 0
    assert not (index.folder / "queries.jsonl").exists()


def test_they_are_removed_by_those_who_may(index: Index) -> None:
    with TestClient(create_app(index, ColourModel(), settings=KEEPING, only_here=True)) as client:
        client.get("/search?q=red")
    with TestClient(create_app(index, ColourModel(), settings=KEEPING)) as open_to_all:
        answer = open_to_all.delete("/queries")
        assert answer.status_code == 403
        assert "other machines may reach it" in answer.json()["error"]
    assert index.asked_queries() == {"red": 1}
    with_token = TestClient(create_app(index, ColourModel(), settings=ServerSettings(token=TOKEN)))  # keeps none itself
    assert with_token.delete("/queries").status_code == 401
    answer = with_token.delete("/queries", headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.json() == {"forgotten": 1}
    assert index.asked_queries() == {}


@pytest.mark.slow  # listens on a socket
def test_a_server_writes_them_when_it_ends_and_the_client_removes_them(index: Index) -> None:
    with background(index, ColourModel(), settings=KEEPING) as address:
        Client(address).search("red")
    assert index.asked_queries() == {"red": 1}
    with background(index, ColourModel(), settings=KEEPING) as address:
        assert Client(address).forget_queries() == {"forgotten": 1}
    assert index.asked_queries() == {}


def test_a_place_that_cannot_keep_them_is_refused_at_the_start(index: Index) -> None:
    nowhere = Index(index.manifest, index.picture_store, index.caption_store)
    with pytest.raises(UserError, match="queries cannot be kept: this index is in no folder; serve a copy"):
        create_app(nowhere, ColourModel(), settings=KEEPING)
