"""Also tests rungwise.serving._workload.

Also tests rungwise.serving.searches._parameters.
Also tests rungwise.serving.searches._terms.
Also tests rungwise.serving.searches._answer_fields.
"""

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from fastapi.testclient import TestClient

from rungwise.data import ImageCaptions
from rungwise.index import Index
from rungwise.serving import ServerSettings, create_app
from tests.colour_model import COLOURS, ColourModel, colour_pictures, picture_bytes
from tests.serving.conftest import MIXED, PATIENT, settle


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    folder = tmp_path_factory.mktemp("served")
    plain = colour_pictures(folder / "photos", MIXED)
    for number, path in enumerate(plain.paths):
        os.utime(path, (1_590_919_230 + number, 1_590_919_230 + number))  # 2020-05-31T10:00:30Z
    years: tuple[int | None, ...] = (2019, 2020, 2021, 2022, None)
    columns = {"year": years, "tags": (("warm",), ("cold",), ("cold",), ("warm", "late"), None)}
    data = ImageCaptions(plain.image_ids, plain.captions, plain.image_of_caption, paths=plain.paths, columns=columns)
    return Index.build(data, ColourModel(), folder / "index")


@pytest.fixture(scope="module")
def client(index: Index) -> Iterator[TestClient]:
    with TestClient(create_app(index, ColourModel(), settings=ServerSettings(limits=PATIENT))) as client:
        yield client


def ids(client: TestClient, **asked: object) -> list[str]:
    answer = client.get("/search", params={"fold": False, "words": "off", **asked})
    assert answer.status_code == 200, answer.text
    return [hit["id"] for hit in answer.json()["hits"]]


def refusal(client: TestClient, status: int, address: str, **asked: object) -> str:
    answer = client.get(address, params=asked)
    assert (answer.status_code, list(answer.json())) == (status, ["error"])
    return answer.json()["error"]


def test_parts_of_a_query_are_given_back_as_they_were_understood(client: TestClient) -> None:
    sent = client.post("/pictures", content=picture_bytes(COLOURS["blue"])).json()["picture"]
    asked = {"q": '2*"red" - "green"', "like": "2-blue", "unlike": "4-yellow", "picture": sent, "picture_weight": -2}
    answer = client.get("/search", params=asked).json()
    assert [(one["kind"], one["text"] or one["id"] or one["picture"], one["weight"]) for one in answer["terms"]] == [
        ("words", "red", 2.0),
        ("words", "green", -0.5),
        ("like", "2-blue", 1.0),
        ("like", "4-yellow", -0.5),
        ("picture", sent, -2.0),
    ]
    assert answer["reading"].startswith('pictures like 2 × "red"')
    assert answer["query"] == '2*"red" - "green"'
    assert not {"2-blue", "4-yellow"} & {hit["id"] for hit in answer["hits"]}


def test_weights_belong_to_the_pictures_in_their_order(client: TestClient) -> None:
    assert ids(client, like=["0-red", "2-blue"], like_weight=[-1, 2], k=1) == ids(
        client, like="2-blue", unlike="0-red", k=1
    )
    assert "weights" in refusal(client, 422, "/search", like="0-red", like_weight=[1, 2])
    assert "weight" in refusal(client, 422, "/search", like="0-red", like_weight="inf")


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("year >= 2021", ["3-red", "2-blue"]),
        ("tags has 'cold'", ["2-blue", "1-green"]),
        ("not tags has 'cold' and year < 2022", ["0-red"]),
        ("", ["4-yellow", "3-red", "2-blue", "1-green", "0-red"]),
        ("modified == '31 May 2020' and year > 2021", ["3-red"]),
        ("modified > '2020-05-31'", []),
        ("modified == '2020-05-31T12:00:31+02:00'", ["1-green"]),
    ],
)
def test_filters_hold_for_searches_and_for_browsing(client: TestClient, where: str, found: list[str]) -> None:
    assert ids(client, where=where) == found  # the newest first
    assert sorted(ids(client, where=where, q="red")) == sorted(found)
    if "0-red" not in found:
        similar = client.get("/similar", params={"id": "0-red", "where": where, "fold": False}).json()
        assert sorted(hit["id"] for hit in similar["hits"]) == sorted(found)


def test_a_filter_that_makes_no_sense_is_one_line(client: TestClient) -> None:
    for address in ("/search", "/search?q=red", "/similar?id=0-red"):
        answer = client.get(
            address,
            params={**dict([address.partition("?")[2].split("=")] if "?" in address else []), "where": "year >>"},
        )
        assert answer.status_code == 422
        assert "\n" not in answer.json()["error"]


@pytest.mark.parametrize(
    ("address", "asked"), [("/search", {}), ("/search", {"q": "red"}), ("/similar", {"id": "0-red"})]
)
def test_a_filter_that_no_picture_can_answer_is_refused(
    client: TestClient, address: str, asked: dict[str, str]
) -> None:
    assert "did you mean year?" in refusal(client, 422, address, **asked, where="yaer > 1")
    said = refusal(client, 422, address, **asked, where="modified > '01.05.2020'")
    assert said.startswith("filter: 'modified' holds dates, and '01.05.2020' could be 2020-05-01 or 2020-01-05;")


def test_pages_go_on_where_the_one_before_ended(client: TestClient) -> None:
    for asked in ({"q": "red"}, {}, {"like": "0-red"}):
        whole = ids(client, **asked)
        pages = [ids(client, **asked, k=2, offset=offset) for offset in range(0, 6, 2)]
        assert [one for page in pages for one in page] == whole
        more = [
            client.get("/search", params={**asked, "fold": False, "k": 2, "offset": at}).json()["more"] for at in (0, 4)
        ]
        assert more == [True, False]


def test_browsing_has_no_scores(client: TestClient) -> None:
    answer = client.get("/search").json()
    assert {hit["score"] for hit in answer["hits"]} == {None}
    assert (answer["terms"], answer["unknown"], answer["scale"]) == ([], [], [0.0, 1.0])


def test_near_duplicates_are_folded_unless_they_are_wanted(client: TestClient) -> None:
    folded = client.get("/search", params={"q": "red", "words": "off"}).json()["hits"]
    assert (folded[0]["id"], folded[0]["folded"]) == ("0-red", ["3-red"])
    assert len(ids(client, q="red")) == len(MIXED)


@pytest.mark.parametrize(
    "asked",
    [{"like": "none"}, {"unlike": "none"}, {"picture": "none"}, {"q": "red", "picture": "0" * 32}],
)
def test_pictures_that_are_not_there_are_404(client: TestClient, asked: dict[str, str]) -> None:
    refusal(client, 404, "/search", **asked)


def test_captions_are_asked_for_by_one_picture(client: TestClient) -> None:
    assert "one of them" in refusal(client, 422, "/captions")
    assert "one of them" in refusal(client, 422, "/captions", id="0-red", picture="0" * 32)
    found = client.get("/captions?id=0-red&k=1").json()["captions"]
    assert (found[0]["text"], found[0]["ids"]) == ("a red square", ["0-red", "3-red"])


def test_an_item_has_all_its_facts(client: TestClient) -> None:
    item = client.get("/items/3-red").json()
    assert (item["id"], item["captions"], item["file_name"], item["has_file"]) == (
        "3-red",
        ["a red square"],
        "3-red.png",
        True,
    )
    assert (item["columns"]["year"], item["columns"]["tags"]) == (2022, ["warm", "late"])


def test_no_answer_tells_where_a_file_lies(client: TestClient, index: Index) -> None:
    place = str(index.folder.parent)
    for address in (
        "/about",
        "/search",
        "/items/0-red",
        "/sample",
        "/similar?id=0-red",
        "/similar?id=none",
        "/search?like=x",
    ):
        assert place not in client.get(address).text


def test_columns_are_described(client: TestClient) -> None:
    client.get("/about")
    settle()
    about = client.get("/about").json()
    columns = {column["name"]: column for column in about["columns"]}
    assert (columns["year"]["type"], columns["year"]["least"], columns["year"]["most"]) == ("number", 2019, 2022)
    assert columns["tags"]["values"][0]["rows"] == 2
    assert about["newest"][0] == "4-yellow"


@pytest.mark.parametrize("together", [1, 64])
def test_many_at_once_get_the_answers_of_one_at_a_time(index: Index, together: int) -> None:
    queries = ["red", "green", "blue", "yellow"] * 4
    app = create_app(index, ColourModel(), settings=ServerSettings(limits=replace(PATIENT, queries_together=together)))
    with TestClient(app) as client, ThreadPoolExecutor(8) as pool:

        def hits(query: str) -> object:
            return client.get("/search", params={"q": query}).json()["hits"]

        alone = {query: hits(query) for query in queries[:4]}
        assert list(pool.map(hits, queries)) == [alone[query] for query in queries]
