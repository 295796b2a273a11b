import math

from fastapi.testclient import TestClient
from prometheus_client.parser import text_string_to_metric_families

from rungwise.index import Index
from rungwise.serving import ServerSettings, create_app
from rungwise.serving._metrics import Metrics
from rungwise.serving.access import parse_tokens
from tests.colour_model import COLOURS, ColourModel, picture_bytes


def numbers(text: str) -> dict[tuple[str, ...], float]:
    """Every sample by its name and the values of its labels."""
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_requests_are_counted_by_route_and_never_by_what_was_asked(shared_index: Index) -> None:
    client = TestClient(create_app(shared_index, ColourModel()), raise_server_exceptions=False)
    for _ in range(2):
        client.get("/search?q=secret-words")
    client.get("/items/0-red")
    client.head("/items/0-red")
    client.get("/items/secret-id")
    client.get("/nowhere/secret")
    client.get("/search", headers={"sec-fetch-site": "cross-site"})
    client.request("FANCY", "/about")
    client.post("/pictures", content=picture_bytes(COLOURS["red"]))
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert "secret" not in answer.text
    found = numbers(answer.text)
    counted = "rungwise_requests_total"
    assert found[counted, "GET", "/search", "200"] == 2
    assert found[counted, "GET", "/items/{id}", "200"] == found[counted, "HEAD", "/items/{id}", "200"] == 1
    assert found[counted, "GET", "/items/{id}", "404"] == 1
    assert found[counted, "GET", "none", "404"] == 1
    assert found[counted, "GET", "none", "403"] == 1
    assert sum(value for key, value in found.items() if key[:2] == (counted, "other")) == 1
    assert found["rungwise_request_seconds_count", "/search"] == 2
    assert found["rungwise_batch_queries_count",] == 2
    assert found["rungwise_pictures",] == 5
    for name in ("waiting_queries", "waiting_encoding", "waiting_decoding", "waiting_reading", "uploads_bytes"):
        assert found[f"rungwise_{name}",] == 0


def test_searches_that_find_nothing_are_counted_without_their_words(shared_index: Index) -> None:
    tokens = parse_tokens("ada read secret-token", "here")
    client = TestClient(create_app(shared_index, ColourModel(), settings=ServerSettings(tokens=tokens)))
    client.headers["authorization"] = "Bearer secret-token"
    counted = "rungwise_searches_total"
    found = numbers(client.get("/metrics").text)
    assert (found[counted, "found"], found[counted, "nothing"]) == (0, 0)
    for address in ("/search?q=red", "/search?q=red&offset=1", "/search?like=0-red", "/search", "/similar?id=0-red"):
        assert client.get(address).status_code == 200
    assert client.get("/search", params={"q": "red", "where": "width > 100000"}).json()["hits"] == []
    text = client.get("/metrics").text
    assert (numbers(text)[counted, "found"], numbers(text)[counted, "nothing"]) == (1, 1)
    assert "ada" not in text
    assert "secret" not in text


def test_readiness_is_what_the_last_look_found() -> None:
    metrics = Metrics()
    ready = lambda: numbers(metrics.text().decode())["rungwise_ready",]  # noqa: E731
    assert math.isnan(ready())
    for status, value in ((503, 0), (401, 0), (200, 1)):
        metrics.answered("GET", "/ready", status, 0.1)
        assert ready() == value
    metrics.answered("GET", "/search", 503, 0.1)
    assert ready() == 1


def test_what_is_watched_is_looked_up_when_it_is_read() -> None:
    metrics, there = Metrics(), [1.0]
    metrics.watch("things", "How many.", lambda: there[0])
    assert numbers(metrics.text().decode())["rungwise_things",] == 1
    there[0] = 2.0
    assert numbers(metrics.text().decode())["rungwise_things",] == 2


def test_servers_count_for_themselves() -> None:
    one, other = Metrics(), Metrics()
    one.answered("GET", "/search", 200, 0.1)
    assert ("rungwise_requests_total", "GET", "/search", "200") in numbers(one.text().decode())
    assert ("rungwise_requests_total", "GET", "/search", "200") not in numbers(other.text().decode())
