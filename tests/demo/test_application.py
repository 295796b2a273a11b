import pytest
from fastapi.testclient import TestClient

from rungwise.demo import create_demo_app
from rungwise.demo._measurement import MEASURES
from rungwise.demo._places import NAMES
from rungwise.serving import ServerSettings
from rungwise.serving.access import HEADERS
from tests.serving.conftest import PATIENT

QUERY = "a small red star above a blue heart"


@pytest.fixture(scope="module")
def client(demo):
    with TestClient(
        create_demo_app(demo, settings=ServerSettings(allowed_hosts=["testserver"], limits=PATIENT))
    ) as client:
        yield client


def test_a_search_gives_both_columns(client, demo):
    found = client.get("/demo/search", params={"q": QUERY}).json()
    assert (found["query"], found["facts"], found["pictures"]) == (QUERY, 6, len(demo.comparison.ids))
    assert [column["name"] for column in found["columns"]] == list(NAMES)
    for column in found["columns"]:
        assert set(column["measures"]) == {"nDCG@10", "CS@100", "CutF1"}
        assert {"id", "degree", "true", "wrong", "expected", "band"} == set(column["hits"][0])
        picture = client.get(f"/{column['name']}/images/{column['hits'][0]['id']}", params={"thumb": 128})
        assert picture.headers["content-type"] == "image/jpeg"


def test_about_holds_what_was_measured(client, demo):
    about = client.get("/demo/about").json()
    assert about["pictures"] == len(demo.comparison.ids)
    assert about["trained"] == demo.results.trained
    assert [line["name"] for line in about["compared"][0]["lines"]] == list(MEASURES)


def test_refusals_are_one_line(client):
    for query in ("?q=", "?q=%20", "", f"?q={'a' * 5000}"):
        answer = client.get(f"/demo/search{query}")
        assert answer.status_code == 422
        assert "\n" not in answer.json()["error"]
    assert client.get("/static/../app.py").status_code == 404
    assert client.get("/demo/nothing").json()["error"]


def test_every_answer_is_protected_as_the_ordinary_page_is(client):
    for path in ("/", "/static/demo.js", "/demo/about", "/degrees/", "/triplet/about"):
        answer = client.get(path)
        assert answer.status_code == 200
        assert {name: answer.headers[name] for name in HEADERS} == HEADERS
    for path in ("/demo/about", "/degrees/about"):
        assert client.get(path, headers={"Host": "elsewhere.example"}).status_code == 421
        assert client.get(path, headers={"Origin": "http://elsewhere.example"}).status_code == 403
        assert client.get(path, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403


def test_each_model_has_its_ordinary_page(client):
    for name in NAMES:
        page = client.get(f"/{name}/")
        assert "<title>rungwise</title>" in page.text
        hits = client.get(f"/{name}/search", params={"q": QUERY, "k": 3}).json()["hits"]
        assert len(hits) == 3


def test_the_document_of_the_interface_names_its_operations(client):
    assert {"/demo/search", "/demo/about"} <= set(client.get("/openapi.json").json()["paths"])
