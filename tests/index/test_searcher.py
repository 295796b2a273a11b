"""Also tests rungwise.index.hits: what a search answers."""

from pathlib import Path

import numpy as np
import pytest
from fastapi.testclient import TestClient

from rungwise.core.errors import UserError
from rungwise.data.collection import ImageCaptions
from rungwise.data.features import FeatureRows
from rungwise.index import Index, Manifest, Searcher
from rungwise.serving import create_app
from rungwise.similarity import Cosine, Inner, Order, ShiftedCosine, Similarity
from tests.colour_model import COLOURS, ColourModel, colour_pictures, picture_bytes
from tests.index.toy_store import ToyStore

MIXED = ["red", "green", "blue", "red", "yellow"]


@pytest.fixture
def index(tmp_path: Path) -> Index:
    return Index.build(colour_pictures(tmp_path / "photos", MIXED), ColourModel(), tmp_path / "index")


def test_the_fingerprint_is_computed_once_however_often_is_searched(index: Index) -> None:
    model = ColourModel()
    searcher = Searcher(index, model)
    for colour in MIXED:
        searcher.search_text(colour)
        searcher.search_image(picture_bytes(COLOURS[colour]))
        searcher.captions_for(picture_bytes(COLOURS[colour]))
        searcher.captions_near(searcher.encode_picture(picture_bytes(COLOURS[colour])))
    assert model.hashed == 1


def test_the_fingerprint_is_computed_once_for_a_build_and_for_a_refusal(index: Index, tmp_path: Path) -> None:
    model = ColourModel()
    Index.build(colour_pictures(tmp_path / "others", MIXED), model, tmp_path / "other")
    assert model.hashed == 1
    other = ColourModel(fingerprint="another")
    with pytest.raises(UserError, match="built by model"):
        Searcher(index, other)
    assert other.hashed == 1


@pytest.mark.parametrize("similarity", [Cosine(), Inner(), ShiftedCosine(), Order(), Order(absolute=True)])
def test_texts_are_ranked_by_the_models_similarity(tmp_path: Path, similarity: Similarity) -> None:
    model = ColourModel(similarity=similarity)
    data = colour_pictures(tmp_path / "photos", MIXED)
    index = Index.build(data, model, tmp_path / "index")
    searcher = Searcher(Index.open(index.folder), model)
    scores = model.block(list(data.paths), ["red yellow"])[:, 0]
    hits = searcher.search_text("red yellow", k=5)
    assert [hit.id for hit in hits] == [data.image_ids[row] for row in np.argsort(-scores, kind="stable")]
    np.testing.assert_allclose([hit.score for hit in hits], sorted(scores, reverse=True), rtol=1e-5)
    captions = searcher.captions_for(data.paths[4], k=2)
    near = model.block([data.paths[4]], captions_of := list(index.captions()))[0]
    assert captions[0].text == captions_of[near.argmax()]
    assert captions[0].score == pytest.approx(near.max(), rel=1e-5)
    # A picture is compared with pictures by cosine, whatever the similarity.
    assert [hit.score for hit in searcher.search_image(data.paths[0], k=2)] == pytest.approx([1, 1])


def test_rows_of_features_are_indexed_and_searched_as_pictures_are(tmp_path: Path) -> None:
    colours = FeatureRows(np.array([COLOURS[one] for one in MIXED], np.float32))
    ids = tuple(f"{n}-{one}" for n, one in enumerate(MIXED))
    data = ImageCaptions(ids, ("a red square",), np.array([0]), features=colours, name="rows")
    Index.build(data, ColourModel(), tmp_path / "index")
    index = Index.open(tmp_path / "index")
    assert [item.path for item in index.items()] == [None] * 5
    assert [hit.id for hit in Searcher(index, ColourModel()).search_text("red", k=2)] == ["0-red", "3-red"]
    assert index.similar("0-red", k=1)[0].id == "3-red"


def test_a_store_from_outside_the_package_is_filled_searched_and_served(tmp_path: Path) -> None:
    model = ColourModel()
    stores = ToyStore(3, Cosine()), ToyStore(3, Cosine(), side="text")
    index = Index(Manifest("toys", model.fingerprint, "", 3), *stores)
    assert (len(index), list(index.captions()), index.issues) == (0, [], ())
    index.upsert(colour_pictures(tmp_path / "photos", MIXED), model)
    searcher = Searcher(index, model)
    assert [hit.id for hit in searcher.search_text("red", k=2)] == ["0-red", "3-red"]
    assert searcher.captions_for(picture_bytes(COLOURS["red"]), k=1)[0].ids == ("0-red", "3-red")
    served = TestClient(create_app(index, model)).get("/search?q=blue&k=1").json()
    assert [hit["id"] for hit in served["hits"]] == ["2-blue"]
    assert index.remove(["0-red"]) == 1
    assert [hit.id for hit in searcher.search_text("red", k=1)] == ["3-red"]


def test_captions_that_no_picture_bears_are_not_found(index: Index) -> None:
    model = ColourModel()
    index.caption_store.upsert(["a pure red nothing"], model.encode_text(["red"]))
    found = Searcher(Index.open(index.folder), model).captions_for(picture_bytes(COLOURS["red"]), k=9)
    assert found[0].text == "a red square"
    assert len(found) == 4


def test_a_picture_is_prepared_in_one_place_and_encoded_in_another(index: Index) -> None:
    searcher, picture = Searcher(index, ColourModel()), picture_bytes(COLOURS["red"])
    vector = searcher.prepare_picture(picture)
    np.testing.assert_array_equal(vector(), searcher.encode_picture(picture))
    with pytest.raises(UserError, match="not a picture"):
        searcher.prepare_picture(b"hello")()


def test_the_same_model_searches_another_index_that_it_built(index: Index, tmp_path: Path) -> None:
    model = ColourModel()
    searcher = Searcher(index, model)
    other = Index.build(colour_pictures(tmp_path / "others", ["blue"]), ColourModel(), tmp_path / "other")
    assert [hit.id for hit in searcher.on(other).search_text("red")] == ["0-blue"]
    assert searcher.search_text("red")[0].id == "0-red"
    assert model.hashed == 1
    strange = Index.build(
        colour_pictures(tmp_path / "others", ["blue"]), ColourModel(fingerprint="another"), tmp_path / "strange"
    )
    with pytest.raises(UserError, match="built by model another"):
        searcher.on(strange)
