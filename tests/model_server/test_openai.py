"""Embeddings as OpenAI's own client asks for them."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import openai
import pytest
from fastapi.testclient import TestClient

from rungwise.model_server import create_model_app
from rungwise.serving import ServerSettings, background_app
from tests.colour_model import COLOURS, ColourModel, picture_bytes
from tests.model_server.conftest import PATIENT

TOKEN = "correct-horse"
RED = picture_bytes(COLOURS["red"], "JPEG")
SENT: Any = {"image": f"data:image/jpeg;base64,{base64.b64encode(RED).decode()}"}

TEXT: Any = {"text": "red"}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Of a server that needs a token."""
    with background_app(
        lambda settings, _: create_model_app(ColourModel(), settings=settings, names=["colours", "other"]),
        settings=ServerSettings(token=TOKEN, limits=PATIENT),
    ) as found:
        yield found


@pytest.fixture(scope="module")
def program(address: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{address}v1", api_key=TOKEN, max_retries=0) as found:
        yield found


@pytest.mark.slow
def test_texts_and_pictures_have_the_vectors_of_the_model(program: openai.OpenAI) -> None:
    model = ColourModel()
    forms: list[dict[str, Any]] = [{}, {"encoding_format": "float"}, {"encoding_format": "base64"}]
    for form in forms:
        given = program.embeddings.create(model="colours", input=["red", SENT, "blue 赤"], **form)
        assert [one.index for one in given.data] == [0, 1, 2]
        assert (given.model, given.object, given.usage.prompt_tokens, given.usage.total_tokens) == (
            "colours", "list", 3, 3,
        )  # fmt: skip
        rows: list[Any] = [one.embedding for one in given.data]
        if form.get("encoding_format") == "base64":
            rows = [np.frombuffer(base64.b64decode(one), "<f4") for one in rows]
        vectors = np.array(rows, np.float32)
        assert np.array_equal(vectors[[0, 2]], model.encode_text(["red", "blue 赤"]))
        assert np.array_equal(vectors[1:2], model.encode_image([RED]).vectors)


@pytest.mark.slow
def test_one_text_and_texts_that_are_named_so(program: openai.OpenAI) -> None:
    one = program.embeddings.create(model="other", input="red", dimensions=3, user="somebody")
    same = program.embeddings.create(model="other", input=[TEXT])
    assert one.data[0].embedding == same.data[0].embedding
    many = program.embeddings.create(model="colours", input=["red"] * 200 + ["green"])
    assert many.data[0].embedding == many.data[199].embedding != many.data[200].embedding


@pytest.mark.slow
def test_the_model_is_listed(program: openai.OpenAI) -> None:
    assert [one.id for one in program.models.list()] == ["colours"]
    assert program.models.retrieve("other").id == "colours"
    with pytest.raises(openai.NotFoundError, match="no model 'text-embedding-3-small' here; ask for colours"):
        program.models.retrieve("text-embedding-3-small")


@pytest.mark.slow
def test_refusals_are_errors_of_the_client(address: str, program: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as missing:
        program.embeddings.create(model="gpt-5", input="red")
    assert missing.value.body == {
        "message": "no model 'gpt-5' here; ask for colours",
        "type": "not_found_error",
        "param": None,
        "code": None,
    }
    with pytest.raises(openai.UnprocessableEntityError, match="input holds token numbers"):
        program.embeddings.create(model="colours", input=[1, 2, 3])
    with (
        openai.OpenAI(base_url=f"{address}v1", api_key="wrong-horse", max_retries=0) as stranger,
        pytest.raises(openai.AuthenticationError) as refused,
    ):
        stranger.embeddings.create(model="colours", input="red")
    assert refused.value.type == "authentication_error"


HUGE = base64.b64encode(bytes(PATIENT.upload_bytes + 1)).decode()


@pytest.mark.parametrize(
    ("sent", "status", "message"),
    [
        (b"", 422, "the request is a JSON object with each name once: input, model"),
        (b"\xff", 422, "the request is a JSON object"),
        (b"[]", 422, "the request is a JSON object"),
        (b"[" * 100_000, 422, "the request is a JSON object"),
        (b'{"input": NaN}', 422, "the request is a JSON object"),
        (b'{"input": "a", "input": "b"}', 422, "each name once"),
        ({}, 422, "the request lacks input"),
        ({"inputs": "a"}, 422, "no name 'inputs' here; did you mean input?"),
        ({"input": "a", "truncate": True}, 422, "no name 'truncate' here"),
        ({"input": []}, 422, "input is empty"),
        ({"input": ""}, 422, "the text is empty"),
        ({"input": ["a", " "]}, 422, "the text is empty"),
        ({"input": "a" * 32_769}, 413, "the text has 32769 characters; send one of at most 32768"),
        ({"input": "\ud800"}, 422, "the text holds halves of characters"),
        ({"input": ["a"] * 2049}, 413, "input has 2049 entries; send at most 2048 at once"),
        ({"input": [[1, 2], [3]]}, 422, "input holds token numbers, which mean nothing to this model; send texts"),
        ({"input": 7}, 422, "input holds token numbers"),
        ({"input": [None]}, 422, "an entry of input is a text, or"),
        ({"input": {"image": "a", "text": "b"}}, 422, "an entry of input is a text, or"),
        ({"input": {"image": 1}}, 422, "an entry of input is a text, or"),
        (
            {"input": {"image": "https://elsewhere.example/a.jpg"}},
            422,
            "image is no data: address, and others are not fetched",
        ),
        ({"input": {"image": "file:///etc/passwd"}}, 422, "image is no data: address, and others are not fetched"),
        ({"input": {"image": "data:image/png,abc"}}, 422, "image is no data: address, and others are not fetched"),
        ({"input": {"image": "data:image/png;base64,%%"}}, 422, "image is no base64"),
        ({"input": {"image": "data:image/png;base64,é"}}, 422, "image is no base64"),
        ({"input": {"image": "data:;base64,"}}, 422, "the picture is empty"),
        ({"input": {"image": "data:image/png;base64,YWJj"}}, 422, "send another file, such as a JPEG"),
        ({"input": {"image": f"data:;base64,{HUGE}"}}, 413, "the picture has 20971521 bytes; send at most 20971520"),
        ({"input": "a", "model": 1}, 422, "model is a text"),
        ({"input": "a", "encoding_format": "int8"}, 422, "encoding_format is one of float, base64"),
        ({"input": "a", "encoding_format": []}, 422, "encoding_format is one of float, base64"),
        ({"input": "a", "dimensions": 2}, 422, "dimensions must be 3, as the model gives; leave it out"),
    ],
)
def test_a_malformed_request_is_refused_in_openais_form(
    client: TestClient, sent: object, status: int, message: str
) -> None:
    content = sent if isinstance(sent, bytes) else json.dumps(sent).encode()
    answer = client.post("/v1/embeddings", content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code == status
    error = answer.json()["error"]
    assert (error["type"], error["param"], error["code"]) == ("invalid_request_error", None, None)
    assert message in error["message"]
    assert "\n" not in error["message"]
    assert len(answer.content) < 1500


def test_what_is_no_json_or_too_large_is_refused(client: TestClient) -> None:
    answer = client.post("/v1/embeddings", content=b"{}", headers={"Content-Type": "text/plain"})
    assert answer.status_code == 422
    assert "Content-Type: application/json" in answer.json()["error"]["message"]
    headers = {"Content-Type": "application/json", "Content-Length": str(1 << 40)}
    answer = client.post("/v1/embeddings", content=b"{}", headers=headers)
    assert (answer.status_code, answer.json()["error"]["message"]) == (
        413,
        "the request is larger than 64 MiB; send a smaller one",
    )


def test_refusals_of_other_operations_keep_their_form(client: TestClient) -> None:
    assert client.get("/v1/nothing").json()["error"]["type"] == "not_found_error"
    assert client.get("/nothing").json() == {"error": "Not Found"}
    head = client.head("/v1/nothing")
    assert (head.status_code, head.content) == (404, b"")
