import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from rungwise.index import Index
from rungwise.serving import ServerSettings, ServingLimits, create_app
from tests.colour_model import COLOURS, ColourModel, colour_pictures, picture_bytes
from tests.serving.conftest import MIXED, TOKEN

RED = picture_bytes(COLOURS["red"])


@pytest.fixture
def index(tmp_path: Path) -> Index:
    return Index.build(colour_pictures(tmp_path / "photos", ["green", "blue"]), ColourModel(), tmp_path / "index")


@pytest.fixture
def client(index: Index) -> Iterator[TestClient]:
    app = create_app(index, ColourModel(), settings=ServerSettings(token=TOKEN))
    with TestClient(app, headers={"authorization": f"Bearer {TOKEN}"}) as client:
        yield client


def added(index: Index) -> list[Path]:
    return list((index.folder.parent / "index.added").glob("*"))


def found(client: TestClient) -> set[str]:
    return {hit["id"] for hit in client.get("/search?q=red&fold=false").json()["hits"]}


def test_a_picture_that_is_added_is_found_at_once_and_in_the_index(client: TestClient, index: Index) -> None:
    asked = {"id": "new/one", "caption": ["a red thing", "of mine"], "columns": '{"year": 2021, "tags": ["x"]}'}
    before = client.get("/about").json()["index_version"]
    answer = client.post("/items", params=asked, content=RED)
    assert answer.status_code == 201
    assert (answer.json()["id"], answer.json()["change"]) == ("new/one", "added")
    assert answer.json()["index_version"] == client.get("/about").json()["index_version"] != before
    assert client.get("/search?q=red&k=1").json()["hits"][0]["id"] == "new/one"
    item = client.get("/items/new%2Fone").json()
    assert (item["captions"], item["columns"]["year"]) == (["a red thing", "of mine"], 2021)
    assert client.get("/images/new%2Fone").content == RED
    stored = Index.open(index.folder).item("new/one")
    assert stored.captions == ("a red thing", "of mine")
    assert [stored.path] == added(index)


def test_a_picture_with_an_id_that_is_there_takes_its_place(client: TestClient, index: Index) -> None:
    collection = index.item("0-green").path
    for body in (RED, picture_bytes(COLOURS["blue"]), RED):
        answer = client.post("/items?id=0-green", content=body).json()
        assert (answer["id"], answer["change"]) == ("0-green", "replaced")
        assert client.get("/images/0-green").content == body
        assert len(added(index)) == 1
    assert found(client) == {"0-green", "1-blue"}
    assert collection.is_file()  # nobody touches the collection


def test_a_picture_that_is_deleted_is_gone_and_its_file_only_if_it_was_sent_here(
    client: TestClient, index: Index
) -> None:
    collection = index.item("0-green").path
    client.post("/items?id=new", content=RED)
    for item_id in ("new", "0-green"):
        answer = client.delete(f"/items/{item_id}").json()
        assert (answer["id"], answer["change"]) == (item_id, "removed")
        assert client.delete(f"/items/{item_id}").status_code == 404
    assert found(client) == {"1-blue"}
    assert added(index) == []
    assert collection.is_file()
    assert len(Index.open(index.folder)) == 1


@pytest.mark.parametrize("body", [b"", b"hello", RED[:60]])
def test_what_is_no_picture_is_not_added(refuser: TestClient, shared_index: Index, body: bytes) -> None:
    before = found(refuser)
    answer = refuser.post("/items?id=new", content=body)
    assert (answer.status_code, list(answer.json())) == (422, ["error"])
    assert added(shared_index) == []
    assert found(refuser) == before


@pytest.mark.parametrize(
    "columns",
    [
        "{", "[]", "1", "null", '{"a": null}', '{"a": {"b": 1}}', '{"a": [1]}', '{"a": NaN}', '{"a": 1e999}',
        '{"": 1}', '{"a": 123456789012345678901234567890}', "[" * 9000, json.dumps({str(n): 1 for n in range(101)}),
    ],
)  # fmt: skip
def test_columns_that_make_no_sense_are_refused(refuser: TestClient, shared_index: Index, columns: str) -> None:
    answer = refuser.post("/items", params={"id": "new", "columns": columns}, content=RED)
    assert (answer.status_code, list(answer.json())) == (422, ["error"])
    assert added(shared_index) == []


@pytest.mark.parametrize(
    "asked", [{}, {"id": ""}, {"id": "x" * 4097}, {"id": "a", "caption": " "}, {"id": "a", "caption": "x" * 2001}]
)
def test_ids_and_captions_have_limits(refuser: TestClient, asked: dict[str, str]) -> None:
    assert refuser.post("/items", params=asked, content=RED).status_code == 422


def test_nothing_is_changed_without_a_token(reader: TestClient, shared_index: Index) -> None:
    assert not reader.get("/about").json()["writable"]
    for answer in (reader.post("/items?id=new", content=RED), reader.delete("/items/0-red")):
        assert answer.status_code == 403
        assert "token" in answer.json()["error"]
    assert len(Index.open(shared_index.folder)) == len(MIXED)


def test_an_index_in_no_folder_is_not_changed(shared_index: Index) -> None:
    free = Index(shared_index.manifest, shared_index.picture_store, shared_index.caption_store)
    client = TestClient(
        create_app(free, ColourModel(), settings=ServerSettings(token=TOKEN)),
        headers={"authorization": f"Bearer {TOKEN}"},
    )
    assert not client.get("/about").json()["writable"]
    assert client.post("/items?id=new", content=RED).status_code == 403


def test_limits_of_pictures_hold_for_those_that_are_added(shared_index: Index) -> None:
    limits = ServingLimits(upload_pixels=100, upload_bytes=5000)
    app = create_app(shared_index, ColourModel(), settings=ServerSettings(token=TOKEN, limits=limits))
    client = TestClient(app, headers={"authorization": f"Bearer {TOKEN}"})
    assert client.post("/items?id=new", content=RED).status_code == 413
    assert client.post("/items?id=new", content=bytes(5001)).status_code == 413
    assert added(shared_index) == []


def test_an_id_is_never_a_path(client: TestClient, index: Index, tmp_path: Path) -> None:
    client.post("/items", params={"id": "../../escaped.png"}, content=RED)
    assert [path.parent.name for path in added(index)] == ["index.added"]
    assert not list(tmp_path.rglob("escaped*"))


@pytest.mark.parametrize("address", ["/pictures", "/items?id=new"])
def test_a_picture_inside_a_form_is_told_the_line_that_works(refuser: TestClient, address: str) -> None:
    answer = refuser.post(address, files={"file": ("x.png", RED, "image/png")})
    assert answer.status_code == 422
    error = answer.json()["error"]
    assert "came inside a form" in error
    assert f"curl --data-binary @photo.jpg 'http://testserver{address}'" in error
    assert "remove" not in error


@pytest.mark.parametrize("body", [b"", b"hello", RED[:60], b"\xff\xd8\xff"])
def test_what_is_no_picture_is_told_what_to_send(refuser: TestClient, body: bytes) -> None:
    error = refuser.post("/pictures", content=body).json()["error"]
    assert "send" in error
    assert "remove" not in error
    assert "RUNGWISE" not in error
