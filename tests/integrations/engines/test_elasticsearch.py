"""Answers are in the form in which the servers' references show them; no server of either comes in a package."""

import base64
import http.server
import json
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.integrations.engines import ElasticsearchEngine, OpenSearchEngine, open_engine

ELASTICSEARCH = """{
  "took": 5, "timed_out": false, "_shards": {"total": 1, "successful": 1, "skipped": 0, "failed": 0},
  "hits": {"total": {"value": 3, "relation": "eq"}, "max_score": 0.9981, "hits": [
    {"_index": "photos", "_id": "2", "_score": 0.9981, "_source": {"file": "dog.jpg"}},
    {"_index": "photos", "_id": "8", "_score": 0.7031, "_source": {"file": "cat.jpg"}},
    {"_index": "photos", "_id": "5", "_score": 0.6502, "_source": {"file": "car.jpg"}}]}}"""
OPENSEARCH = """{
  "took": 2, "timed_out": false, "_shards": {"total": 1, "successful": 1, "skipped": 0, "failed": 0},
  "hits": {"total": {"value": 2, "relation": "eq"}, "max_score": 0.8, "hits": [
    {"_index": "photos", "_id": "dog.jpg", "_score": 0.8},
    {"_index": "photos", "_id": "cat.jpg", "_score": 0.31}]}}"""
MISSING = """{"error": {"root_cause": [{"type": "index_not_found_exception", "reason": "no such index [films]"}],
  "type": "index_not_found_exception", "reason": "no such index [films]", "index": "films"}, "status": 404}"""
pytestmark = pytest.mark.slow  # a server listens, with what is recorded
QUERY = np.array([0.25, -1], np.float32)


class Server(http.server.BaseHTTPRequestHandler):
    """Answers each path with what is recorded for it, and keeps what was asked."""

    recorded: dict[str, tuple[int, str]]
    asked: list[tuple[str, Any, str | None]]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append((self.path, body, self.headers["Authorization"]))
        status, answer = self.recorded.get(self.path, (404, MISSING))
        self.send_response(status)
        self.send_header("Location", "http://127.0.0.1:1/elsewhere")
        self.end_headers()
        self.wfile.write(answer.encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[tuple[str, type[Server]]]:
    handler = type("Recorded", (Server,), {"recorded": {}, "asked": []})
    listening = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=listening.serve_forever)
    thread.start()
    yield f"127.0.0.1:{listening.server_port}", handler
    listening.shutdown()
    thread.join()
    listening.server_close()


def test_elasticsearch_is_asked_by_knn_and_read_by_a_field_of_ids(server):
    address, recorded = server
    recorded.recorded |= {"/photos/_search": (200, ELASTICSEARCH), "/photos/_count": (200, '{"count": 3}')}
    engine = open_engine(f"elasticsearch+http://me:p%40ss@{address}/photos?vector=clip&id=file")
    assert isinstance(engine, ElasticsearchEngine)
    ids, scores = engine.search(QUERY, 3)
    assert ids == ("dog.jpg", "cat.jpg", "car.jpg")
    np.testing.assert_allclose(scores, [0.9981, 0.7031, 0.6502])
    assert engine.count() == 3
    knn = {"field": "clip", "query_vector": [0.25, -1.0], "k": 3, "num_candidates": 30}
    authorization = "Basic " + base64.b64encode(b"me:p@ss").decode()
    assert recorded.asked == [
        ("/photos/_search", {"knn": knn, "size": 3, "_source": ["file"]}, authorization),
        ("/photos/_count", {"query": {"exists": {"field": "clip"}}}, authorization),
    ]
    assert "p@ss" not in engine.name
    assert "me" not in engine.name


def test_opensearch_is_asked_by_its_own_query_and_read_by_document_ids(server):
    address, recorded = server
    recorded.recorded["/photos/_search"] = (200, OPENSEARCH)
    engine = open_engine(f"opensearch+http://{address}/photos?vector=clip")
    assert isinstance(engine, OpenSearchEngine)
    assert engine.search(QUERY, 2)[0] == ("dog.jpg", "cat.jpg")
    [(path, body, authorization)] = recorded.asked
    assert body == {"query": {"knn": {"clip": {"vector": [0.25, -1.0], "k": 2}}}, "size": 2, "_source": False}
    assert (path, authorization) == ("/photos/_search", None)


@pytest.mark.parametrize(
    ("status", "answer", "line"),
    [
        (404, MISSING, "Elasticsearch, photos: refused with status 404 (no such index [films])"),
        (302, "{}", "Elasticsearch, photos: refused with status 302 (no reason given)"),
        (401, '{"error": "\\u001b[2J"}', "refused with status 401"),
        (200, "<html>", "what answers there speaks no JSON"),
        (200, "[" * 100_000, "what answers there speaks no JSON"),
        (200, "{}", "what answers there is no Elasticsearch; correct the address"),
        (200, '{"hits": {"hits": [7]}}', "what answers there is no Elasticsearch"),
        (200, '{"hits": {"hits": [{"_id": "a", "_score": null}]}}', "a score that is no finite number"),
        (200, '{"hits": {"hits": [{"_id": "a", "_score": NaN}]}}', "a score that is no finite number"),
        (200, '{"hits": {"hits": [{"_id": null, "_score": 1}]}}', "no id in the field of the ids"),
    ],
)
def test_what_else_may_answer_is_told_in_one_line(server, status, answer, line):
    address, recorded = server
    recorded.recorded["/photos/_search"] = (status, answer)
    with pytest.raises(UserError) as refused:
        ElasticsearchEngine(f"http://{address}", "photos").search(QUERY, 3)
    assert line in str(refused.value)
    assert "\n" not in str(refused.value)
    assert "\x1b" not in str(refused.value)


def test_no_server_is_there(server):
    with pytest.raises(UserError, match=r"cannot be asked \(.*\); is the server running\?"):
        ElasticsearchEngine("http://127.0.0.1:1", "photos").count()
    with pytest.raises(UserError, match="write it as http://HOST:PORT"):
        ElasticsearchEngine("localhost:9200", "photos")
