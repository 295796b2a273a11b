from pathlib import Path

import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.data import ImageCaptions
from rungwise.index import Condition, Index, Where
from rungwise.index.stores import StoreHits
from rungwise.quality import CaptionGrading, ModelGrading, Queries, own_captions, own_pictures
from rungwise.relevance import CIDErD, TfIdf
from tests.index.toy_store import ToyStore
from tests.quality.test_check import made


@pytest.fixture
def index() -> Index:
    return made(ToyStore, rows=30)


def data_of(index: Index) -> ImageCaptions:
    items = list(index.items())
    captions = [text for item in items for text in item.captions]
    return ImageCaptions(tuple(item.id for item in items), tuple(captions), np.arange(len(items)))


def searched(index: Index, queries: Queries, k: int, where: Where | None = None) -> StoreHits:
    found = [
        index.picture_store.search(queries.vectors[n][None], k, queries.where(n, where), metric=queries.metric)
        for n in range(len(queries))
    ]
    return StoreHits(tuple(one.ids[0] for one in found), tuple(one.scores[0] for one in found))


def test_captions_are_graded_as_the_source_grades_the_collection(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rungwise.quality._degrees.CHUNK_BYTES", 4 * 12 * 7)  # seven pictures at a time
    data, queries = data_of(index), own_captions(index, 12)
    expected = (
        CIDErD(data.captions, data.image_of_caption).dense()[:, [data.captions.index(t) for t in queries.names]].T
    )
    where = Where((Condition("year", ">=", 2010),))
    allowed = np.array([where.holds(one, record) for one, record in index.picture_store.records()])
    found = searched(index, queries, 5, where)
    graded = CaptionGrading(index, queries, "cider-d").grade([found], found, where, 5)
    for query, ids in enumerate(found.ids):
        np.testing.assert_allclose(graded.found[0][query], expected[query, [int(one) for one in ids]], rtol=1e-5)
        best = np.sort(expected[query][allowed])[::-1][:5]
        np.testing.assert_allclose(graded.ideal[query], best, rtol=1e-5)


def test_a_picture_stands_for_its_captions_and_is_no_candidate_itself(index: Index) -> None:
    data, queries = data_of(index), own_pictures(index, 6)
    expected = TfIdf(data.captions, data.image_of_caption).dense()
    found = searched(index, queries, 4)
    graded = CaptionGrading(index, queries, "tfidf").grade([found], found, None, 4)
    for query, name in enumerate(queries.names):
        column = expected[:, int(name)]
        np.testing.assert_allclose(graded.found[0][query], column[[int(one) for one in found.ids[query]]], rtol=1e-5)
        np.testing.assert_allclose(graded.ideal[query], np.sort(np.delete(column, int(name)))[::-1][:4], rtol=1e-5)


def test_texts_from_outside_are_graded_by_the_captions_of_pictures(index: Index) -> None:
    text = next(iter(index.captions()))
    queries = Queries("texts", (text, "zebra"), index.caption_store.get([text])[text].vector[None].repeat(2, axis=0))
    found = searched(index, queries, 30)
    graded = CaptionGrading(index, queries, "tfidf").grade([found], found, None, 3)
    bearer = index.ids_with_captions([text])[text][0]
    assert graded.found[0][0][found.ids[0].index(bearer)] == pytest.approx(1)
    assert graded.ideal[0][0] == pytest.approx(1)
    assert not graded.ideal[1].any()


def test_stored_degrees_are_taken_for_captions_alone(index: Index, tmp_path: Path) -> None:
    data = data_of(index)
    TfIdf(data.captions, data.image_of_caption).save(tmp_path / "degrees")
    queries = own_captions(index, 5)
    found = searched(index, queries, 3)
    stored, made_now = (
        CaptionGrading(index, queries, source).grade([found], found, None, 3)
        for source in (str(tmp_path / "degrees"), "tfidf")
    )
    np.testing.assert_allclose(stored.ideal, made_now.ideal, rtol=1e-6)
    np.save(tmp_path / "small.npy", np.ones((2, 3), np.float32))
    with pytest.raises(UserError, match="shape"):
        CaptionGrading(index, queries, str(tmp_path / "small.npy"))
    texts = Queries("texts", ("a",), queries.vectors[:1])
    with pytest.raises(UserError, match="not of other texts"):
        CaptionGrading(index, texts, str(tmp_path / "degrees"))


def test_negative_degrees_are_refused(index: Index, tmp_path: Path) -> None:
    np.save(tmp_path / "negative.npy", -np.ones((30, 30), np.float32))
    queries = own_captions(index, 5)
    found = searched(index, queries, 3)
    with pytest.raises(UserError, match="negative"):
        CaptionGrading(index, queries, str(tmp_path / "negative.npy")).grade([found], found, None, 3)


def test_an_index_without_captions_is_graded_by_the_model_alone() -> None:
    index = made(ToyStore, rows=10, captions=False)
    queries = own_pictures(index, 4)
    with pytest.raises(UserError, match="grade by model"):
        CaptionGrading(index, queries, "cider-d")
    found = searched(index, queries, 3)
    graded = ModelGrading(index, queries).grade([found], found, None, 3)
    for query in range(4):
        np.testing.assert_allclose(graded.found[0][query], np.maximum(found.scores[query], 0), atol=1e-6)
        np.testing.assert_allclose(graded.ideal[query], np.maximum(found.scores[query], 0), atol=1e-6)
