"""Also tests rungwise.serving.schemas._why."""

import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from fastapi.testclient import TestClient
from PIL import Image

from rungwise.core import UserError
from rungwise.data import ImageCaptions
from rungwise.data.files import FeatureRows
from rungwise.index import Index
from rungwise.models import PairScorer
from rungwise.serving import Client, Reranker, ServerSettings, ServingLimits, create_app
from tests.colour_model import COLOURS, ColourModel, colour_pictures
from tests.pointing_model import PointingModel
from tests.serving.wire import reached


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    folder = tmp_path_factory.mktemp("served")
    data = colour_pictures(folder / "photos", ["red", "green", "blue", "yellow"])
    assert data.paths is not None
    two = Image.new("RGB", (80, 60), COLOURS["blue"])
    two.paste(COLOURS["red"], (0, 30, 40, 60))
    two.save(data.paths[0])  # red, below on the left
    return Index.build(data, ColourModel(), folder / "index")


@pytest.fixture(scope="module")
def client(index: Index) -> Iterator[TestClient]:
    with TestClient(create_app(index, ColourModel(), reranker=Reranker(PointingModel(COLOURS), 3))) as client:
        yield client


def refusal(client: TestClient, status: int, **asked: str) -> str:
    answer = client.get("/why", params=asked)
    assert (answer.status_code, list(answer.json())) == (status, ["error"]), answer.text
    assert "\n" not in answer.json()["error"]
    return answer.json()["error"]


def test_words_are_found_where_they_are(client: TestClient) -> None:
    answer = client.get("/why", params={"id": "0-red", "q": "a red square on blue"}).json()
    assert (answer["id"], answer["model"], len(answer["boxes"])) == ("0-red", "pointing", 16)
    (text,) = answer["texts"]
    assert (text["text"], text["weight"]) == ("a red square on blue", 1.0)
    words = {one["word"]: one for one in text["words"]}
    assert list(words) == ["a", "red", "square", "on", "blue"]
    assert words["red"]["where"] == "lower left"
    strongest = sorted(range(16), key=lambda region: -words["red"]["regions"][region])[:4]
    assert sorted(strongest) == [8, 9, 12, 13]
    assert answer["boxes"][8] == [0.0, 0.5, 0.25, 0.75]
    assert sum(words["red"]["regions"]) == pytest.approx(1, abs=0.01)
    assert words["red"]["share"] > words["a"]["share"] > 0
    assert sum(one["share"] for one in text["words"]) < 1  # the rest is the text's frame


def test_every_text_of_a_query_is_explained_and_weighed(client: TestClient) -> None:
    answer = client.get("/why", params={"id": "0-red", "q": '"red" - "green"'}).json()
    assert [(one["text"], one["weight"]) for one in answer["texts"]] == [("red", 1.0), ("green", -0.5)]
    many = " + ".join(f'"red {number}"' for number in range(9))
    assert len(client.get("/why", params={"id": "0-red", "q": many}).json()["texts"]) == 4


def test_what_makes_no_sense_is_one_line(client: TestClient) -> None:
    assert "no picture with this id" in refusal(client, 404, id="none", q="red")
    assert "no words" in refusal(client, 422, id="0-red", q="  ")
    assert "q" in refusal(client, 422, id="0-red")
    assert "id" in refusal(client, 422, q="red")


def test_a_picture_that_is_gone_is_said_without_its_place(tmp_path: Path) -> None:
    data = colour_pictures(tmp_path / "photos", ["red", "green"])
    index = Index.build(data, ColourModel(), tmp_path / "index")
    assert data.paths is not None
    Path(str(data.paths[0])).unlink()
    Path(str(data.paths[1])).write_bytes(b"no picture")
    with TestClient(create_app(index, ColourModel(), reranker=Reranker(PointingModel(COLOURS)))) as client:
        for item_id in ("0-red", "1-green"):
            said = refusal(client, 404, id=item_id, q="red")
            assert "can no longer be read" in said
            assert str(tmp_path) not in said


def test_a_picture_that_takes_too_much_memory_is_refused(index: Index) -> None:
    limits = ServingLimits(decoding_memory=1 << 16)
    with TestClient(
        create_app(
            index, ColourModel(), reranker=Reranker(PointingModel(COLOURS)), settings=ServerSettings(limits=limits)
        )
    ) as client:
        assert "too many to look at" in refusal(client, 422, id="0-red", q="red")


def test_rows_of_features_have_no_picture_to_look_at(tmp_path: Path) -> None:
    rows = FeatureRows(np.random.default_rng(0).random((3, 3)).astype(np.float32))
    data = ImageCaptions(("x", "y", "z"), (), np.zeros(0), features=rows)
    index = Index.build(data, ColourModel(), tmp_path / "index")
    with TestClient(create_app(index, ColourModel(), reranker=Reranker(PointingModel(COLOURS)))) as client:
        assert "no file" in refusal(client, 404, id="x", q="red")


class Silent(PairScorer):
    kind = "silent"
    fingerprint = "silent"

    def block(self, images, captions):
        return np.zeros((len(images), len(captions)), np.float32)


def test_who_cannot_say_why_says_so(index: Index) -> None:
    with TestClient(create_app(index, ColourModel())) as client:
        assert "--rerank" in refusal(client, 422, id="0-red", q="red")
        about = client.get("/about").json()
        assert (about["reranked_by"], about["rerank_top"], about["explains"]) == ("", 0, False)
    with TestClient(create_app(index, ColourModel(), reranker=Reranker(Silent()))) as client:
        assert "kind 'silent' cannot say" in refusal(client, 422, id="0-red", q="red")
        about = client.get("/about").json()
        assert (about["reranked_by"], about["rerank_top"], about["explains"]) == ("silent", 50, False)


def test_the_python_client_asks_it(index: Index) -> None:
    with reached(create_app(index, ColourModel(), reranker=Reranker(PointingModel(COLOURS)))) as address:
        asking = Client(address)
        assert asking.about()["explains"] is True
        assert asking.why("red", "0-red")["texts"][0]["words"][0]["where"] == "lower left"
        with pytest.raises(UserError, match="no picture with this id"):
            asking.why("red", "none")


def test_a_packed_picture_is_looked_at(tmp_path: Path) -> None:
    import tarfile

    from rungwise.data.files import TarMember

    file = io.BytesIO()
    Image.new("RGB", (40, 30), COLOURS["red"]).save(file, "PNG")
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        member = tarfile.TarInfo("red.png")
        member.size = len(file.getvalue())
        archive.addfile(member, io.BytesIO(file.getvalue()))
    place = TarMember(tmp_path / "a.tar", 512, len(file.getvalue()), "red.png")
    data = ImageCaptions(("red",), (), np.zeros(0), paths=(place,))
    index = Index.build(data, ColourModel(), tmp_path / "index")
    with TestClient(create_app(index, ColourModel(), reranker=Reranker(PointingModel(COLOURS)))) as client:
        assert client.get("/why", params={"id": "red", "q": "red"}).status_code == 200
