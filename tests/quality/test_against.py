import math

import numpy as np
import pytest

from rungwise.calibration import BEYOND, QueryJudgement
from rungwise.core import UserError
from rungwise.index import Index
from rungwise.quality import CaptionGrading, EngineCheck, check_against, own_captions, own_pictures
from tests.index.toy_store import ToyStore
from tests.quality.test_check import made

K = 5


class Elsewhere:
    """An engine that holds the pictures of an index without every third one, and some that the index has not."""

    name = "elsewhere"

    def __init__(self, index: Index, *, lacks: int = 3, called: str = "{}", strangers: tuple[str, ...] = ()) -> None:
        ids = list(index.picture_store.ids())
        self.called = called
        self.rows = {one: row.vector for one, row in index.picture_store.get(ids).items()}
        for one in ids[::lacks]:
            del self.rows[one]
        self.rows |= {one: np.ones(8, np.float32) for one in strangers}

    def count(self) -> int:
        return len(self.rows)

    def search(self, vector: np.ndarray, k: int) -> tuple[tuple[str, ...], np.ndarray]:
        scores = {one: float(row @ vector) for one, row in self.rows.items()}
        best = sorted(scores, key=lambda one: -scores[one])[:k]
        return tuple(self.called.format(one) for one in best), np.array([scores[one] for one in best])


@pytest.fixture
def index() -> Index:
    return made(ToyStore)


def judge(vector: np.ndarray, ids: list[str]) -> QueryJudgement:
    """The end is before the first picture whose number is even."""
    even = [int(one) % 2 == 0 for one in ids]
    cut = even.index(True) if True in even else len(ids)
    rungs = np.where(np.arange(len(ids)) < cut, 1, BEYOND)
    return QueryJudgement(np.zeros(len(ids)), rungs, cut, 1.0)


def checked(index: Index, **changes: object) -> tuple[EngineCheck, Elsewhere]:
    engine = Elsewhere(index)
    queries = own_captions(index, 40)
    grading = CaptionGrading(index, queries, "tfidf")
    return check_against(engine, index, queries, grading, k=K, judge=judge, judged_by="evenness", **changes), engine


def test_what_the_engine_lacks_is_counted_query_by_query(index):
    found, engine = checked(index)
    queries = own_captions(index, 40)
    recalls, incomplete = [], 0
    rows = index.picture_store.get(list(index.picture_store.ids()))
    for vector in queries.vectors:
        scores = {one: float(row.vector @ vector) for one, row in rows.items()}
        exact = sorted(scores, key=lambda one: -scores[one])[:K]
        served = engine.search(vector, K)[0]
        recalls.append(100 * sum(one in served for one in exact) / K)
        incomplete += recalls[-1] < 100
    assert found.recall.value == pytest.approx(np.mean(recalls))
    assert found.incomplete == incomplete > 0
    assert (found.rows, found.pictures, found.queries, found.unknown) == (40, 60, 40, 0)
    assert found.losses[0].difference.value < 0


def test_ends_are_counted_with_the_degrees_on_both_sides(index):
    found, engine = checked(index)
    queries = own_captions(index, 40)
    grading = CaptionGrading(index, queries, "tfidf")
    before, after, cuts, whole = [], [], [], 0
    for number, vector in enumerate(queries.vectors):
        ids = engine.search(vector, K)[0]
        column = grading._columns[number]
        degrees = grading._degrees.block(np.array([grading._positions[one] for one in ids]), column).mean(axis=1)
        cut = judge(vector, list(ids)).cut
        cuts.append(cut)
        whole += cut == K
        before += degrees[:cut].tolist()
        after += degrees[cut:].tolist()
    ends = found.ends
    assert ends is not None
    assert ends.judged_by == "evenness"
    assert ends.shown == pytest.approx(np.mean(cuts))
    assert ends.after == pytest.approx(100 * len(after) / (len(before) + len(after)))
    assert (ends.empty, ends.whole) == (cuts.count(0), whole)
    assert ends.degree_before == pytest.approx(np.mean(before), abs=1e-6)
    assert ends.degree_after == pytest.approx(np.mean(after), abs=1e-6)


def test_a_whole_engine_misses_nothing_and_pictures_do_not_find_themselves(index):
    engine = Elsewhere(index, lacks=1000)
    engine.rows = {one: row.vector for one, row in index.picture_store.get(list(index.picture_store.ids())).items()}
    for queries in (own_captions(index, 20), own_pictures(index, 20)):
        grading = CaptionGrading(index, queries, "tfidf")
        found = check_against(engine, index, queries, grading, k=K)
        assert (found.recall.value, found.incomplete, found.ends) == (100, 0, None)
        assert found.losses[0].difference.value == pytest.approx(0)


def test_hits_that_the_index_lacks_are_left_out_and_counted(index):
    engine = Elsewhere(index, strangers=("stranger",))
    queries = own_captions(index, 40)
    asked = [engine.search(vector, K)[0] for vector in queries.vectors]
    found = check_against(engine, index, queries, CaptionGrading(index, queries, "tfidf"), k=K)
    assert found.unknown == sum("stranger" in ids for ids in asked) > 0


def test_an_engine_of_other_ids_is_refused_with_both_ids(index):
    engine = Elsewhere(index, called="photos/{}.jpg")
    queries = own_captions(index, 5)
    with pytest.raises(
        UserError, match=r"none of its hits is in the index: it calls one 'photos/\d+\.jpg', the index one"
    ):
        check_against(engine, index, queries, CaptionGrading(index, queries, "tfidf"), k=K)


def test_an_empty_engine_is_no_error_and_nothing_is_shown(index):
    engine = Elsewhere(index)
    engine.rows = {}
    queries = own_captions(index, 5)
    found = check_against(engine, index, queries, CaptionGrading(index, queries, "tfidf"), k=K, judge=judge)
    assert found.recall.value == 0
    assert found.ends is not None
    assert (found.ends.empty, found.ends.shown, found.ends.after) == (5, 0, 0)
    assert math.isnan(found.ends.degree_before)
    assert found.plain()["ends"]["degree_before"] is None


def test_progress_is_told_of_each_search(index):
    steps: list[int] = []
    checked(index, progress=steps.append)
    assert steps == [1] * 80
