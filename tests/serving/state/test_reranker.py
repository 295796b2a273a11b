from collections.abc import Iterator

import numpy as np
import pytest
from fastapi.testclient import TestClient

from rungwise.core import UserError
from rungwise.index import Index
from rungwise.models import PairScorer
from rungwise.models.regions._scan import SCAN, SCANConfig
from rungwise.serving import Reranker, create_app
from tests.colour_model import ColourModel, colour_pictures
from tests.models.regions.small import coloured_regions, sides_of_features


class Green(PairScorer):
    """The greener a picture is, the better it fits whatever is asked."""

    kind = "green"
    fingerprint = "green"

    def block(self, images, captions):
        scores = ColourModel().encode_image(images).vectors[:, 1:2]
        return np.repeat(scores, len(captions), axis=1).astype(np.float32)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    folder = tmp_path_factory.mktemp("served")
    return Index.build(
        colour_pictures(folder / "photos", ["red", "yellow", "blue"], captions=False), ColourModel(), folder / "index"
    )


@pytest.fixture(scope="module")
def client(index: Index) -> Iterator[TestClient]:
    with TestClient(create_app(index, ColourModel(), reranker=Reranker(Green(), 2))) as client:
        yield client


def found(client: TestClient, address: str, **asked: object) -> tuple[list[str], str]:
    words = {} if address == "/similar" else {"words": "off"}
    answer = client.get(address, params={"end": False, "fold": False, **words, **asked}).json()
    return [hit["id"] for hit in answer["hits"]], " ".join(answer["notes"])


def test_the_first_hits_of_a_search_with_words_are_ranked_anew_and_it_is_said(client: TestClient, index: Index) -> None:
    with TestClient(create_app(index, ColourModel())) as plain:
        order, notes = found(plain, "/search", q="red")
    assert (order, notes) == (["0-red", "1-yellow", "2-blue"], "")
    order, notes = found(client, "/search", q="red")
    assert order == ["1-yellow", "0-red", "2-blue"]
    assert notes.startswith("reranked the first 2 by green: ")


def test_pictures_alone_are_searched_as_before(client: TestClient) -> None:
    for address, asked in (("/search", {"like": "0-red"}), ("/similar", {"id": "0-red"}), ("/search", {})):
        _, notes = found(client, address, **asked)
        assert "reranked" not in notes


def test_a_reranker_looks_at_one_hit_at_least() -> None:
    with pytest.raises(UserError, match="looks at 0 hits"):
        Reranker(Green(), 0)


def test_a_reranker_of_features_is_refused_before_anyone_searches() -> None:
    data = coloured_regions()
    with pytest.raises(UserError, match="a model of kind 'scan', was trained on rows of features in place of pictures"):
        Reranker(SCAN.create(SCANConfig(**sides_of_features(), dimension=8), data.captions, data.features))
