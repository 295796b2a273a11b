"""The interface of the grading page. Also tests rungwise.grading._schemas."""

import http.client
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from rungwise.core.disk.sealed_lines import hash_of_text
from rungwise.data import ImageCaptions, Issue
from rungwise.grading import Questions, create_grading_app
from rungwise.grading._questions import Question
from rungwise.relevance.human import Judgement, add_judgement, now, read_judgements
from rungwise.serving import ServerSettings, ServingLimits, background_app
from rungwise.serving.access import HEADERS

JSON = {"Content-Type": "application/json"}


@pytest.fixture
def client(questions: Questions, out: Path) -> TestClient:
    return TestClient(
        create_grading_app(questions, out, file="wrong.csv", settings=ServerSettings(allowed_hosts=["testserver"]))
    )


def judged(client: TestClient, place: int, grade: int | None, who: str = "Ada") -> Any:
    pair = client.get(f"/grading/pairs/{place}").json()
    sent = {"who": who, "grade": grade, **{key: pair[key] for key in ("image", "caption", "text_hash")}}
    answer = client.post("/grading/judgements", json=sent)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_pair_is_shown_with_what_was_written_for_its_picture(
    client: TestClient, questions: Questions, data: ImageCaptions
) -> None:
    for place, asked in enumerate(questions.asked):
        pair = client.get(f"/grading/pairs/{place}").json()
        assert (pair["image"], pair["caption"]) == (data.image_ids[asked.image], data.caption_ids[asked.caption])
        assert pair["text"] == data.captions[asked.caption]
        assert pair["text_hash"] == hash_of_text(pair["text"])
        assert pair["direction"] == ("i2t", "t2i")[place % 2]
        own = [text for at, text in enumerate(data.captions) if data.image_of_caption[at] == asked.image]
        assert pair["own"] == own
        picture = client.get(f"/grading/pictures/{place}")
        assert picture.headers["content-type"] == "image/png"
        assert picture.content == data.paths[asked.image].read_bytes()  # type: ignore[union-attr]


def test_the_caption_in_question_is_not_among_those_of_its_picture(data: ImageCaptions, out: Path) -> None:
    client = TestClient(create_grading_app(Questions(data, (Question(0, 2),)), out))
    pair = client.get("/grading/pairs/0").json()
    assert len(pair["own"]) == 4
    assert pair["text"] not in pair["own"]


def test_a_judgement_is_kept_replaced_and_taken_back(client: TestClient, questions: Questions, out: Path) -> None:
    assert judged(client, 1, 4)["given"] == [None, 4, None, None]
    assert judged(client, 0, 2)["history"] == [1, 0]
    assert judged(client, 1, 3)["given"] == [2, 3, None, None]
    assert judged(client, 1, 3)["counts"] == {"4": 0, "3": 1, "2": 1, "1": 0}
    kept = read_judgements(out)
    assert [(one.pair, one.grade, one.who, one.direction) for one in kept] == [
        (questions.ids(0), 2, "Ada", "i2t"),
        (questions.ids(1), 3, "Ada", "t2i"),
    ]
    assert kept.kept[0].text_hash == questions.text_hash(0)
    assert judged(client, 1, None)["given"] == [2, None, None, None]
    assert client.get("/grading/progress", params={"who": "Ada"}).json()["history"] == [0]


def test_two_graders_do_not_see_each_other_and_are_compared(client: TestClient, out: Path) -> None:
    for place, grade in enumerate((4, 1, 2)):
        judged(client, place, grade)
    assert not client.get("/grading/progress", params={"who": "Bo"}).json()["history"]
    for place, grade in enumerate((4, 1, 1)):
        found = judged(client, place, grade, " Bo ")
    assert found["who"] == "Bo"
    assert found["given"] == [4, 1, 1, None]
    assert found["agreement"]["shared"] == 3
    (couple,) = found["agreement"]["couples"]
    assert (couple["first"], couple["second"], couple["alike"], couple["kappa"]) == ("Ada", "Bo", 2, 0.5)
    assert found["summary"][2].startswith("Ada and Bo: 2 of 3 pairs alike, Cohen's kappa 0.50")
    assert read_judgements(out).graders == ("Ada", "Bo")


def test_what_others_append_meanwhile_counts(client: TestClient, questions: Questions, out: Path) -> None:
    judged(client, 0, 4)
    image, caption = questions.ids(2)
    add_judgement(out, Judgement(image, caption, 1, "Ada", now(), questions.text_hash(2)))
    assert client.get("/grading/progress", params={"who": "Ada"}).json()["given"] == [4, None, 1, None]
    again = TestClient(create_grading_app(questions, out))
    assert again.get("/grading/progress", params={"who": "Ada"}).json()["history"] == [0, 2]


def test_a_grade_of_a_text_that_changed_is_asked_for_again(client: TestClient, questions: Questions, out: Path) -> None:
    judged(client, 1, 4)
    image, caption = questions.ids(0)
    add_judgement(out, Judgement(image, caption, 1, "Ada", now(), hash_of_text("what stood there before")))
    found = client.get("/grading/progress", params={"who": "Ada"}).json()
    assert (found["given"], found["history"]) == ([None, 4, None, None], [1])
    assert judged(client, 0, 3)["given"] == [3, 4, None, None]


def test_grades_of_other_tables_in_the_file_are_not_counted(
    client: TestClient, questions: Questions, out: Path
) -> None:
    add_judgement(out, Judgement("elsewhere", "elsewhere#0", 4, "Ada", now(), questions.text_hash(0)))
    found = judged(client, 0, 4)
    assert (found["given"], found["counts"]["4"]) == ([4, None, None, None], 1)


def test_blanks_and_ways_to_write_an_accent_make_no_other_person(client: TestClient, out: Path) -> None:
    judged(client, 0, 4, "Zoë  B")
    assert judged(client, 1, 4, " Zoe\u0308\nB ")["given"] == [4, 4, None, None]
    assert read_judgements(out).graders == ("Zoë B",)
    assert client.get("/grading/progress", params={"who": "Zoe\u0308 B"}).json()["history"] == [0, 1]


def test_places_of_another_order_are_told_apart(client: TestClient, questions: Questions, out: Path) -> None:
    turned = replace(questions, asked=questions.asked[::-1])
    texts = replace(questions, data=replace(questions.data, captions=tuple("a dog" for _ in questions.data.captions)))
    mine = client.get("/grading/about").json()["version"]
    assert mine == client.get("/grading/pairs/2").json()["version"] == judged(client, 0, 4)["version"]
    assert client.get("/grading/pictures/0", params={"version": mine}).status_code == 200
    for other in (turned, texts):
        again = TestClient(create_grading_app(other, out))
        assert again.get("/grading/about").json()["version"] != mine
        answer = again.get("/grading/pictures/0", params={"version": mine})
        assert (answer.status_code, list(answer.json())) == (409, ["error"])


def good(questions: Questions) -> dict[str, object]:
    image, caption = questions.ids(0)
    return {"who": "Ada", "image": image, "caption": caption, "text_hash": questions.text_hash(0), "grade": 3}


WRONG: Sequence[object] = (
    b"", b"{", b"[]", b"null", b"[" * 10_000, b"\xff", {"grade": 0}, {"who": "\u3164"}, {"who": "\u2800"},
    {"grade": 5}, {"grade": 3.5}, {"grade": "3"},
    {"grade": True}, {"grade": [3]}, {"who": ""}, {"who": "  "}, {"who": "a" * 81}, {"who": 3}, {"who": None},
    {"image": 1}, {"caption": None}, {"text_hash": 0}, {"more": 1},
)  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG, ids=[f"{number}" for number in range(len(WRONG))])
def test_what_is_no_judgement_is_one_line(client: TestClient, questions: Questions, out: Path, wrong: Any) -> None:
    content = wrong if isinstance(wrong, bytes) else json.dumps({**good(questions), **wrong}).encode()
    answer = client.post("/grading/judgements", content=content, headers=JSON)
    assert (answer.status_code, list(answer.json())) == (422, ["error"])
    assert "\n" not in answer.json()["error"]
    assert not out.exists()


def test_a_field_that_is_missing_is_refused(client: TestClient, questions: Questions) -> None:
    for field in good(questions):
        sent = {key: value for key, value in good(questions).items() if key != field}
        assert client.post("/grading/judgements", json=sent).status_code == 422, field


def test_pairs_that_nobody_is_asked_about_are_refused(client: TestClient, questions: Questions, out: Path) -> None:
    asked, other = good(questions), questions.ids(1)
    for change in ({"image": "nothing"}, {"caption": other[1]}, {"image": "../" + str(asked["image"])}):
        answer = client.post("/grading/judgements", json={**asked, **change})
        assert answer.status_code == 404
        assert "load the page again" in answer.json()["error"]
    for place in (-1, 4, 10**30):
        assert client.get(f"/grading/pairs/{place}").status_code == 404
        assert client.get(f"/grading/pictures/{place}").status_code == 404
    for place in ("x", "1.5", "..%2f..%2fjudgements.jsonl"):
        assert client.get(f"/grading/pictures/{place}").status_code in (404, 422)
    assert not out.exists()


def test_a_text_that_was_not_read_is_not_graded(client: TestClient, questions: Questions, out: Path) -> None:
    answer = client.post("/grading/judgements", json={**good(questions), "text_hash": hash_of_text("before")})
    assert answer.status_code == 409
    assert not out.exists()


def test_a_page_elsewhere_can_neither_read_nor_judge(client: TestClient, questions: Questions, out: Path) -> None:
    for path in ("/grading/about", "/grading/pairs/0", "/grading/pictures/0", "/grading/progress?who=Ada"):
        assert {name: client.get(path).headers[name] for name in HEADERS} == HEADERS
        assert client.get(path, headers={"Host": "elsewhere.example"}).status_code == 421
        assert client.get(path, headers={"Origin": "http://elsewhere.example"}).status_code == 403
        assert client.get(path, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    body = json.dumps(good(questions))
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        assert client.post("/grading/judgements", content=body, headers={"Content-Type": kind}).status_code == 422
    for elsewhere in ({"Origin": "http://elsewhere.example"}, {"Sec-Fetch-Site": "cross-site"}):
        assert client.post("/grading/judgements", content=body, headers=JSON | elsewhere).status_code == 403
    assert client.post("/grading/judgements", content=body, headers=JSON | {"Host": "evil.example"}).status_code == 421
    assert not out.exists()


def test_a_body_has_an_end(client: TestClient) -> None:
    answer = client.post("/grading/judgements", content=b" " * 20_000, headers=JSON)
    assert answer.status_code == 413


@pytest.mark.slow
def test_a_slow_judgement_is_given_up(questions: Questions, out: Path) -> None:
    """The body is read by ``rungwise.serving.access._bodies``, whose tests need no socket."""
    impatient = ServerSettings(limits=ServingLimits(body_seconds=0.2))
    with background_app(lambda _, __: create_grading_app(questions, out, settings=impatient)) as address:
        connection = http.client.HTTPConnection(address.split("/")[2])
        connection.putrequest("POST", "/grading/judgements")
        connection.putheader("Content-Type", "application/json")
        connection.putheader("Content-Length", "50")
        connection.endheaders(b'{"who"')
        assert connection.getresponse().status == 408
        connection.close()


@pytest.mark.parametrize("who", ["", "a" * 81, "\u3164", "\u200b", "\u2800", "\u0301", "\xa0", "\u202e"])
def test_a_name_has_a_length(client: TestClient, who: str) -> None:
    answer = client.get("/grading/progress", params={"who": who})
    assert (answer.status_code, list(answer.json())) == (422, ["error"])


def test_about_says_what_is_graded(questions: Questions, out: Path) -> None:
    issues = tuple(Issue("row of an unknown picture", f"wrong.csv, line {line}", "'x'") for line in range(60))
    app = create_grading_app(replace(questions, issues=issues), out, file="wrong.csv", grader="Ada", next_command="go")
    about = TestClient(app).get("/grading/about").json()
    assert (about["pairs"], about["file"], about["grader"], about["next"]) == (4, "wrong.csv", "Ada", "go")
    assert [grade for grade, _ in about["grades"]] == [4, 3, 2, 1]
    assert (about["left_out_count"], len(about["left_out"])) == (60, 50)
    assert about["left_out"][0] == "row of an unknown picture: wrong.csv, line 0: 'x'"


def test_the_page_asks_for_nothing_elsewhere(client: TestClient) -> None:
    page = client.get("/")
    assert "<title>rungwise grade</title>" in page.text
    assert "http://" not in page.text
    assert "https://" not in page.text
    assert client.get("/static/grading.js").status_code == 200
    assert client.get("/static/../app.py").status_code == 404


def test_the_document_names_every_operation(client: TestClient) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    assert set(paths) == {
        "/grading/about", "/grading/progress", "/grading/pairs/{place}", "/grading/pictures/{place}",
        "/grading/judgements",
    }  # fmt: skip


def test_ids_that_are_no_text_are_judged_too(tmp_path: Path, data: ImageCaptions, out: Path) -> None:
    odd = ImageCaptions(("dog \udcff.png",), ("a dog",), np.array([0]), paths=data.paths[:1])
    client = TestClient(create_grading_app(Questions(odd, (Question(0, 0),)), out))
    assert judged(client, 0, 4)["given"] == [4]
    assert read_judgements(out).pairs == (("dog \udcff.png", "dog \udcff.png#0"),)


def test_a_disk_that_takes_nothing_is_said(questions: Questions, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    client = TestClient(create_grading_app(questions, tmp_path / "file" / "judgements.jsonl"))
    answer = client.post("/grading/judgements", json=good(questions))
    assert answer.status_code == 422
    assert "choose another place" in answer.json()["error"]
