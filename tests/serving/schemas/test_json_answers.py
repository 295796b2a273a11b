"""Also tests rungwise.serving.schemas.responses."""

import json
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from pydantic import TypeAdapter

from rungwise.serving.schemas import json_answer, responses
from tests.colour_model import COLOURS, picture_bytes


@pytest.fixture
def client(reader: TestClient) -> TestClient:
    return reader


def test_halves_of_characters_become_question_marks_everywhere() -> None:
    picture = responses.Picture("a", ("x\udcfe", "日本"), {"\udcff": ("\udcfd", "sea"), "year": 2021}, has_file=True)
    answer = responses.FoundSimilar("v", "", (), "", (), (), False, (0.0, 1.0), (), None, picture)
    assert json.loads(json_answer(answer).body)["of"] == {
        "id": "a", "captions": ["x?", "日本"], "columns": {"?": ["?", "sea"], "year": 2021}, "has_file": True,
    }  # fmt: skip
    assert json.loads(json_answer(responses.Refusal("\udc80")).body) == {"error": "?"}


def test_what_has_no_json_is_a_failure_of_ours() -> None:
    with pytest.raises(TypeError, match="Path"):
        json_answer({"path": Path()})


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("/about", responses.About),
        ("/health", responses.Health),
        ("/ready", responses.Ready),
        ("/search?q=red", responses.FoundPictures),
        ("/search", responses.FoundPictures),
        ("/similar?id=0-red", responses.FoundSimilar),
        ("/captions?id=0-red", responses.Captions),
        ("/sample", responses.PictureSample),
        ("/items/0-red", responses.SinglePicture),
        ("/pictures", responses.KeptUpload),
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
    for operations in document["paths"].values():
        for operation in operations.values():
            for status, response in operation["responses"].items():
                if int(status) >= 400:
                    schema = response["content"]["application/json"]["schema"]
                    assert schema == {"$ref": "#/components/schemas/Refusal"}
