from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import kendalltau

from rungwise.core import UserError
from rungwise.index import Condition, Index, Item, Manifest, Where
from rungwise.index._items import to_record
from rungwise.index.stores import StoreFacts, StoreHits
from rungwise.quality import CaptionGrading, Grading, ModelGrading, Queries, check, own_captions, own_pictures, searches
from rungwise.quality._check import recalls_of
from rungwise.quality._degrees import GradedHits
from rungwise.similarity import Cosine
from tests.index.toy_store import ToyStore

ROWS, DIMENSION = 60, 8


class Forgetful(ToyStore):
    """An approximate store that never finds every third row."""

    def search(self, vectors, k=10, where=None, *, metric=None, exact=False) -> StoreHits:
        missed = frozenset() if exact else frozenset(list(self.rows)[::3])
        return super().search(vectors, k, (where or Where()).and_without(missed), metric=metric)

    def about(self) -> StoreFacts:
        return StoreFacts("forgetful", exact=False, why="for tests")


@pytest.fixture
def index() -> Index:
    return made(Forgetful)


def made(kind: type[ToyStore], rows: int = ROWS, captions: bool = True) -> Index:
    draw = np.random.default_rng(0)
    pictures, texts = kind(DIMENSION, Cosine()), ToyStore(DIMENSION, Cosine(), side="text")
    vectors = draw.standard_normal((rows, DIMENSION)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    words = ["dog", "cat", "red", "boat", "snow", "tree", "house"]
    records = []
    for row in range(rows):
        text = f"{' '.join(draw.choice(words, 3))} {row}"
        item = Item(str(row), None, (text,) * captions, (f"{row}#0",) * captions, {"year": 2000 + row % 20})
        records.append(to_record(item, None))
        if captions:
            texts.upsert([text], vectors[row : row + 1])
    pictures.upsert([str(row) for row in range(rows)], vectors, records)
    return Index(Manifest("toys", "", "", DIMENSION), pictures, texts)


class Given(Grading):
    title = "given"

    def __init__(self, degrees: np.ndarray) -> None:
        self.degrees = degrees

    def grade(self, searches: Sequence[StoreHits], exact: StoreHits, where: Where | None, k: int) -> GradedHits:
        found = tuple([self.degrees[q, [int(i) for i in ids]] for q, ids in enumerate(f.ids)] for f in searches)
        return GradedHits(found, -np.sort(-self.degrees, axis=1)[:, :k])


def by_hand(index: Index, queries: Queries, degrees: np.ndarray, k: int, exact: bool) -> tuple[float, float, float]:
    """Recall, nDCG and CS of one search, in loops."""
    recalls, gains, agreements = [], [], []
    for query, vector in enumerate(queries.vectors):
        served = index.picture_store.search(vector[None], k, exact=exact)
        right = index.picture_store.search(vector[None], k, exact=True).ids[0]
        recalls.append(len(set(served.ids[0]) & set(right)) / len(right))
        got = [degrees[query, int(one)] for one in served.ids[0]]
        best = sorted(degrees[query], reverse=True)[:k]
        discounts = [1 / np.log2(place + 2) for place in range(k)]
        gains.append(np.dot(got, discounts[: len(got)]) / np.dot(best, discounts))
        agreements.append(kendalltau(served.scores[0], got).statistic)
    return 100 * np.mean(recalls), 100 * np.mean(gains), float(np.mean(agreements))


def test_recall_and_graded_loss_are_those_counted_by_hand(index: Index) -> None:
    queries = own_captions(index, 40)
    degrees = np.random.default_rng(1).random((40, ROWS))
    found = check(index.picture_store, queries, Given(degrees), k=7)
    case = found.cases[0]
    recall, ndcg, cs = by_hand(index, queries, degrees, 7, exact=False)
    _, exact_ndcg, exact_cs = by_hand(index, queries, degrees, 7, exact=True)
    assert case.recall is not None
    assert case.recall.value == pytest.approx(recall)
    assert recall < 90
    assert [loss.name for loss in case.losses] == ["nDCG@7", "CS@7"]
    assert [loss.served for loss in case.losses] == pytest.approx([ndcg, cs])
    assert [loss.exact for loss in case.losses] == pytest.approx([exact_ndcg, exact_cs])
    assert case.losses[0].difference.value == pytest.approx(ndcg - exact_ndcg)
    for number in (case.recall, *(loss.difference for loss in case.losses)):
        assert number.interval.low < number.value < number.interval.high
    assert 0 < case.incomplete <= 40


def test_a_filter_leaves_fewer_pictures_than_were_asked_for(index: Index) -> None:
    where = Where((Condition("year", "==", 2001),))
    found = check(
        index.picture_store, own_captions(index, 9), Given(np.ones((9, ROWS))), filters={"": None, "y": where}
    )
    assert [case.pictures for case in found.cases] == [ROWS, 3]
    assert found.cases[1].recall is not None
    assert found.cases[1].recall.value == pytest.approx(100 * 2 / 3)


def test_a_filter_that_nothing_fulfils_is_refused(index: Index) -> None:
    where = Where((Condition("year", "==", 1900),))
    with pytest.raises(UserError, match="no picture fulfils year == 1900"):
        check(index.picture_store, own_captions(index, 9), Given(np.ones((9, ROWS))), filters={"year == 1900": where})


def test_nothing_is_compared_where_the_store_is_exact() -> None:
    index = made(ToyStore)
    queries = own_captions(index, 5)
    asked: list[int] = []
    found = check(index.picture_store, queries, ModelGrading(index, queries), progress=asked.append)
    case = found.cases[0]
    assert (case.recall, case.exact_latency, case.incomplete) == (None, None, 0)
    assert case.losses[0].served == pytest.approx(100)
    assert len(asked) == searches(index.picture_store, queries) == 5


def test_a_copy_served_in_place_of_another_is_no_miss() -> None:
    one, other = np.array([0.9, 0.5], np.float32), np.array([0.9, 0.4], np.float32)
    assert recalls_of(StoreHits((("a", "copy"),), (one,)), StoreHits((("a", "b"),), (one,)), 2) == [100]
    assert recalls_of(StoreHits((("a", "c"),), (other,)), StoreHits((("a", "b"),), (one,)), 2) == [50]


def test_a_picture_does_not_find_itself(index: Index) -> None:
    queries = own_pictures(index, 20)
    found = check(index.picture_store, queries, ModelGrading(index, queries), k=ROWS)
    assert found.cases[0].losses[0].exact == pytest.approx(100)
    assert found.cases[0].losses[0].served < 100


def test_everything_is_plain_numbers_for_json(index: Index) -> None:
    queries = own_captions(index, 3)
    plain = check(index.picture_store, queries, CaptionGrading(index, queries, "tfidf"), k=1).plain()
    assert plain["cases"][0]["recall"]["interval"].keys() == {"low", "high"}
    assert plain["store"]["kind"] == "forgetful"


def test_an_index_of_one_picture_is_checked(tmp_path: Path) -> None:
    index = made(ToyStore, rows=1)
    queries = own_captions(index, 200)
    found = check(index.picture_store, queries, CaptionGrading(index, queries, "cider-d"))
    assert (found.queries, found.cases[0].pictures) == (1, 1)
    with pytest.raises(UserError, match="1 picture: there is no other to find"):
        own_pictures(index, 200)
