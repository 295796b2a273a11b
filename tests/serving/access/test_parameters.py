"""Names that a request may use: in addresses and in JSON, of every operation."""

import json
import re

import pytest
from fastapi import HTTPException
from fastapi.testclient import TestClient

from rungwise.serving.access import object_of
from rungwise.serving.access._parameters import require_known


def test_a_misspelt_parameter_is_refused_and_the_nearest_is_named(reader: TestClient) -> None:
    for address, near in (
        ("/search?query=red", "did you mean q?"),
        ("/search?q=red&wher=x", "did you mean where?"),
        ("/search?q=red&like_weigth=1", "did you mean like_weight?"),
        ("/similar?ID=0-red", "did you mean id?"),
        ("/images/0-red?thumbnail=64", "did you mean thumb?"),
        ("/health?x=1", "There are: none"),
        ("/items/0-red?q=1", "There are: none"),
    ):
        answer = reader.get(address)
        assert answer.status_code == 422, address
        assert near in answer.json()["error"], answer.json()


def test_no_operation_takes_a_parameter_that_it_does_not_know_or_one_twice(reader: TestClient) -> None:
    described = reader.get("/openapi.json").json()["paths"]
    asked = 0
    for path, methods in described.items():
        for method, operation in methods.items():
            plain = re.sub(r"{\w+}", "0-red", path)
            answer = reader.request(method, plain, params={"unheard": 1})
            assert answer.status_code == 422, (method, path)
            assert "no parameter 'unheard' here" in answer.json()["error"]
            for one in operation.get("parameters", []):
                if one["in"] == "query" and one["schema"].get("type") != "array":
                    answer = reader.request(method, plain, params=[(one["name"], 1), (one["name"], 2)])
                    assert (answer.status_code, "give it once" in answer.json()["error"]) == (422, True), one["name"]
                    asked += 1
    assert asked > 15


def test_pages_and_files_may_have_what_links_and_browsers_add(reader: TestClient) -> None:
    for address in ("/?q=red&utm_source=x", "/docs?x=1", "/static/app.js?v=1", "/common/looks.css?v=1&v=2"):
        assert reader.get(address).status_code == 200, address


def test_a_name_of_many_letters_is_cut(reader: TestClient) -> None:
    answer = reader.get("/search", params={"x" * 9000: 1})
    assert answer.status_code == 422
    assert len(answer.content) < 500
    assert "…" in answer.json()["error"]


def test_names_of_json_are_known_and_stand_once() -> None:
    require_known("name", ["id"], ["id", "who"])
    with pytest.raises(HTTPException, match="did you mean who"):
        require_known("name", ["whoo"], ["id", "who"])
    with pytest.raises(ValueError, match="twice"):
        json.loads('{"a": {"b": 1, "b": 2}}', object_pairs_hook=object_of)


def test_columns_of_an_added_picture_stand_once(refuser: TestClient) -> None:
    answer = refuser.post("/items", params={"id": "new", "columns": '{"a": 1, "a": 2}'}, content=b"x")
    assert answer.status_code == 422
