"""Who is let in, what is counted, and many requests at once."""

import json
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from urllib.parse import urlsplit

import numpy as np
import pytest
from fastapi.testclient import TestClient

from rungwise.core import UserError
from rungwise.model_server import create_model_app
from rungwise.serving import ServerSettings, background_app
from rungwise.serving.access import AccessTokens, NamedToken, Visitor, seal_of
from tests.colour_model import COLOURS, ColourModel, picture_bytes
from tests.model_server import recorded
from tests.model_server.conftest import PATIENT
from tests.model_server.test_immich import OfRows

READER, WATCHER = "reader-horse", "watcher-horse"


def test_what_is_served_is_said(client: TestClient) -> None:
    found = client.get("/").json()
    assert found.pop("version")
    assert found == {
        "model": "rungwise-c0ffeec0ffee",
        "dimension": 3,
        "similarity": "cosine",
        "pictures": True,
        "texts": True,
    }


def test_rights_of_tokens() -> None:
    tokens = AccessTokens(
        [
            NamedToken(Visitor("immich", "read"), (seal_of(READER),)),
            NamedToken(Visitor("monitor", "watch"), (seal_of(WATCHER),)),
        ]
    )
    app = create_model_app(ColourModel(), settings=ServerSettings(tokens=tokens, limits=PATIENT))
    body = recorded.form(recorded.TEXTUAL, text=b"red")
    with TestClient(app) as client:
        for token, watching, reading in ((READER, 200, 200), (WATCHER, 200, 403), ("", 401, 401)):
            bearer = {"Authorization": f"Bearer {token}"} if token else {}
            for path in ("/ping", "/metrics"):
                assert client.get(path, headers=bearer).status_code == watching
            for path in ("/v1/models", "/openapi.json"):
                assert client.get(path, headers=bearer).status_code == reading
            assert client.post("/predict", content=body, headers=recorded.HEAD | bearer).status_code == reading
            assert client.get("/nothing", headers=bearer).status_code == (404 if token else 401)
    assert "/predict" in app.openapi()["paths"]


def test_a_page_elsewhere_and_another_name_are_refused() -> None:
    app = create_model_app(ColourModel(), settings=ServerSettings(allowed_hosts=["rungwise"], limits=PATIENT))
    with TestClient(app, base_url="http://rungwise:3003") as client:
        assert client.get("/ping").text == "pong"
        assert client.get("/ping", headers={"Host": "elsewhere.example"}).status_code == 421
        assert client.get("/v1/models", headers={"Origin": "http://elsewhere.example"}).status_code == 403


def test_work_is_counted(client: TestClient) -> None:
    client.post("/predict", content=recorded.form(recorded.TEXTUAL, text=b"red"), headers=recorded.HEAD)
    counted = client.get("/metrics").text
    assert 'rungwise_requests_total{method="POST",route="/predict",status="200"} 1.0' in counted
    assert "rungwise_batch_queries_count 1.0" in counted
    assert "rungwise_waiting_queries 0.0" in counted


def test_a_model_of_rows_alone_and_a_blank_name_are_refused() -> None:
    with pytest.raises(UserError, match="reads rows of features, no pictures and no words"):
        create_model_app(OfRows(pictures=False, words=False))
    with pytest.raises(UserError, match="a name of the model is blank"):
        create_model_app(ColourModel(), names=["a", " "])


@pytest.mark.slow
def test_fifty_requests_at_once_are_all_answered() -> None:
    """By one client, with the limits that the command has."""
    model, colours = ColourModel(), [*COLOURS]
    pictures = [picture_bytes(COLOURS[name], size=(200, 100)) for name in colours]
    texts, images = model.encode_text(colours), model.encode_image(pictures).vectors

    with background_app(lambda settings, _: create_model_app(model, settings=settings)) as address:
        place = urlsplit(address)

        def ask(number: int) -> bool:
            which = number % len(colours)
            if number % 2:
                body, expected = recorded.form(recorded.TEXTUAL, text=colours[which].encode()), texts[which]
            else:
                body, expected = recorded.form(recorded.VISUAL, image=pictures[which]), images[which]
            connection = HTTPConnection(str(place.hostname), place.port)
            connection.request("POST", "/predict", body, recorded.HEAD)
            answer = connection.getresponse()
            vector = np.array(json.loads(json.loads(answer.read())["clip"]), np.float32)
            connection.close()
            return answer.status == 200 and np.array_equal(vector, expected)

        with ThreadPoolExecutor(50) as pool:
            assert all(pool.map(ask, range(50)))
