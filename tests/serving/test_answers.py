import json
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from pydantic import TypeAdapter

from rungwise.index import Index
from rungwise.serving import answers, create_app
from rungwise.serving.answers import Refusal, json_answer
from tests.colour_model import COLOURS, ColourModel, colour_pictures, picture_bytes


@pytest.fixture
def client(tmp_path: Path) -> TestClient:
    data = colour_pictures(tmp_path / "photos", ["red", "blue"])
    return TestClient(create_app(Index.build(data, ColourModel(), tmp_path / "index"), ColourModel()))


def test_halves_of_characters_become_question_marks_everywhere() -> None:
    picture = answers.Picture(0, "\udcff", ("x\udcfe", "日本"), has_file=True)
    answer = answers.FoundSimilar("a", (), (0.0, 1.0), picture)
    assert json.loads(json_answer(answer).body)["of"] == {
        "position": 0, "id": "?", "captions": ["x?", "日本"], "has_file": True,
    }  # fmt: skip
    assert json.loads(json_answer(Refusal("\udc80")).body) == {"error": "?"}


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("/api/status", answers.Status),
        ("/api/search?q=red", answers.FoundByText),
        ("/api/similar/0", answers.FoundSimilar),
        ("/api/search-by-picture", answers.FoundByPicture),
    ],
)
def test_answers_are_as_the_document_says(client: TestClient, address: str, kind: type) -> None:
    body = picture_bytes(COLOURS["red"]) if "picture" in address else None
    answer = client.post(address, content=body) if body else client.get(address)
    given = answer.json()
    assert TypeAdapter(kind).validate_python(given)
    document = client.get("/openapi.json").json()
    assert set(given) == set(document["components"]["schemas"][kind.__name__]["properties"])


def test_every_refusal_of_the_document_has_one_shape(client: TestClient) -> None:
    document = client.get("/openapi.json").json()
    statuses = {
        path: {method: set(operation["responses"]) for method, operation in operations.items()}
        for path, operations in document["paths"].items()
    }
    everywhere = {"200", "400", "401", "403", "421", "503"}
    assert statuses == {
        "/api/status": {"get": everywhere},
        "/api/search": {"get": everywhere | {"422"}},
        "/api/similar/{number}": {"get": everywhere | {"404", "409", "422"}},
        "/api/search-by-picture": {"post": everywhere | {"408", "413", "422", "429"}},
        "/pictures/{number}": {"get": everywhere | {"304", "404", "409", "422"}},
    }
    for operations in document["paths"].values():
        for operation in operations.values():
            for status, response in operation["responses"].items():
                if int(status) >= 400:
                    schema = response["content"]["application/json"]["schema"]
                    assert schema == {"$ref": "#/components/schemas/Refusal"}
