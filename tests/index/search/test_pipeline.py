"""Also tests rungwise.index._ranking, and the options of a search."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rungwise.calibration import BEYOND, QueryJudgement
from rungwise.core import UserError
from rungwise.index import Condition, SearchOptions, Where
from rungwise.index._ranking import JudgedRanking, PictureCandidates
from rungwise.index.search import fused, groups_of
from rungwise.index.stores import LabelledVector, Row, StoreHits, label_of
from rungwise.similarity import Cosine, Inner
from tests.index.toy_store import ToyStore

ROWS, WIDTH = 390, 32
_RNG = np.random.default_rng(3)


def store_of(rows: int = ROWS, copies: int = 3) -> ToyStore:
    """Rows in clusters, every ``copies``-th of which has the content of the one before."""
    store = ToyStore(WIDTH, Cosine())
    vectors = _RNG.normal(size=(rows, WIDTH)).astype(np.float32)
    hashes = [str(row // copies) for row in range(rows)]
    for row in range(rows):
        if row % copies:
            vectors[row] = vectors[row - 1]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    store.upsert([f"p{row}" for row in range(rows)], vectors, [{"hash": one, "n": int(one)} for one in hashes])
    return store


class CountingStore(ToyStore):
    """Counts the rows whose vectors are asked for, and refuses to give whole records of rows."""

    asked = 0

    def labelled(self, ids: Sequence[str], column: str) -> dict[str, LabelledVector]:
        self.asked += len(ids)
        return {one: label_of(self.rows[one], column) for one in ids if one in self.rows}

    def get(self, ids: Sequence[str]) -> dict[str, Row]:
        raise AssertionError(f"the records of {len(ids)} rows are read")


STORE = store_of()
QUERY = np.eye(1, WIDTH, dtype=np.float32)


def candidates(where: Where | None = None) -> PictureCandidates:
    return PictureCandidates(STORE, QUERY, None, where or Where(), exact=False)


@settings(max_examples=40)
@given(
    st.integers(1, 60),
    st.integers(1, 60),
    st.lists(st.integers(0, ROWS - 1), unique=True, max_size=40),
    st.booleans(),
    st.sampled_from([0.0, 0.5]),
    st.booleans(),
)
def test_a_longer_answer_begins_with_a_shorter_one(
    short: int, more: int, words: list, fold: bool, diversity: float, turn: bool
) -> None:
    by_words = [f"p{row}" for row in words]
    reorder = (lambda ids: [*reversed(ids[:7]), *ids[7:]]) if turn else None
    few, many = (
        groups_of(candidates(), needed, by_words=by_words, reorder=reorder, fold=fold, diversity=diversity)
        for needed in (short, short + more)
    )
    assert [one.id for one in few[:short]] == [one.id for one in many[:short]]
    seen = [one for group in many for one in (group.id, *group.folded)]
    assert len(seen) == len(set(seen))
    assert len(many) >= min(short + more, ROWS if not fold else ROWS // 3)


def test_everything_is_found_in_the_end() -> None:
    for fold, number in ((False, ROWS), (True, -(-ROWS // 3))):
        groups = groups_of(candidates(), 10 * ROWS, by_words=["p7"], reorder=None, fold=fold, diversity=0.0)
        assert len(groups) == number
        assert sorted(one for group in groups for one in (group.id, *group.folded)) == sorted(STORE.rows)


def test_copies_are_folded_under_the_first() -> None:
    (first, *_) = groups_of(candidates(), 5, by_words=(), reorder=None, fold=True, diversity=0.0)
    same = STORE.rows[first.id].record["hash"]
    assert set(first.folded) == {one for one, row in STORE.rows.items() if row.record["hash"] == same} - {first.id}


def test_full_text_is_fused_with_the_nearest() -> None:
    plain = candidates().nearest(ROWS)
    words = [plain[300], plain[2]]
    groups = groups_of(candidates(), 20, by_words=words, reorder=None, fold=False, diversity=0.0)
    assert [one.id for one in groups[:20]] == fused([plain[:200], words])[:20]
    assert {plain[300], plain[2]} <= {one.id for one in groups[:3]}


def test_scores_are_similarities_also_of_those_that_words_brought() -> None:
    some = candidates()
    near = some.nearest(3)
    ids = ["p389", *near]
    expected = [float(STORE.rows[one].vector @ QUERY[0]) for one in ids]
    np.testing.assert_allclose(some.scores(ids), expected, rtol=1e-5)
    inner = ToyStore(2, Inner())
    inner.upsert(["a", "b"], [[3, 0], [0, 2]])
    by_cosine = PictureCandidates(inner, np.array([[0.5, 0]], np.float32), "cosine", Where(), exact=False)
    assert by_cosine.scores(["a", "b"]) == pytest.approx([1, 0])


def test_a_filter_holds_at_any_depth() -> None:
    where = Where((Condition("n", "<", 10),))
    groups = groups_of(candidates(where), 100, by_words=(), reorder=None, fold=True, diversity=0.0)
    assert len(groups) == 10


def test_an_empty_store_has_no_ranking() -> None:
    empty = PictureCandidates(ToyStore(2, Cosine()), np.ones((1, 2), np.float32), None, Where(), exact=False)
    assert groups_of(empty, 5, by_words=(), reorder=None, fold=True, diversity=0.5) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"diversity": 2.0}, "diversity is 2"),
        ({"words": "maybe"}, "words is 'maybe'"),
        ({"rerank_top": 0}, "rerank_top"),
    ],
)
def test_options_out_of_range_are_refused(options: dict, message: str) -> None:
    with pytest.raises(UserError, match=message):
        SearchOptions(**options)


def test_pictures_far_down_are_found_too_where_all_are_duplicates() -> None:
    store = ToyStore(2, Cosine())
    store.upsert([f"p{row}" for row in range(1000)], np.ones((1000, 2)))
    same = PictureCandidates(store, np.ones((1, 2), np.float32), None, Where(), exact=False)
    groups = groups_of(same, 30, by_words=(), reorder=None, fold=True, diversity=0.0)
    assert len(groups) >= 30
    assert len(groups[0].folded) == 399
    everything = groups_of(same, 5000, by_words=(), reorder=None, fold=True, diversity=0.0)
    assert sum(1 + len(group.folded) for group in everything) == 1000
    assert everything[: len(groups)] == groups


@pytest.mark.parametrize("copies", [1, 3])
def test_what_is_read_of_rows_does_not_grow_with_their_number(copies: int) -> None:
    asked = []
    for rows in (ROWS, 5 * ROWS):
        store = CountingStore(WIDTH, Cosine())
        store.rows = store_of(rows, copies).rows
        some = PictureCandidates(store, QUERY, None, Where(), exact=False)
        by_words = [f"p{row}" for row in range(0, rows, rows // 30)]
        found = groups_of(some, 11, by_words=by_words, reorder=None, fold=True, diversity=0.0)
        some.scores([group.id for group in found])
        asked.append(store.asked)
    assert max(asked) <= 4 * 11 * copies, "each row that is shown or compared with one, and few more"


def test_vectors_that_are_known_from_whole_rows_are_not_asked_for() -> None:
    store = CountingStore(WIDTH, Cosine())
    store.rows = STORE.rows
    some = PictureCandidates(store, QUERY, None, Where(), exact=False)
    some._rows = {one: STORE.rows[one] for one in ("p0", "p1")}
    found = some.labelled(["p1", "p2", "gone", "p0"])
    assert [*found] == ["p1", "p2", "p0"]
    assert store.asked == 2
    assert found["p1"].label == STORE.rows["p1"].record["hash"]


def test_a_ranking_that_was_judged_before_takes_one_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another page, or another filter, of the same query asks for the nearest before the end, however deep that is."""
    whole, cut = candidates(), 300
    judgement = QueryJudgement(np.linspace(1, 0, ROWS), np.repeat([1, BEYOND], [cut, ROWS - cut]), cut, 1.0)
    ranking = JudgedRanking(whole.nearest(ROWS), whole.nearest_scores(ROWS), judgement, 0.5, "made")
    searched, search = [], STORE.search

    def counted(*given: object, **named: object) -> StoreHits:
        searched.append(given)
        return search(*given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(STORE, "search", counted)
    some = candidates()
    groups = groups_of(
        some, 25, by_words=["p7"], reorder=None, fold=True, diversity=0.0, judged=ranking, certain=["p7"]
    )
    assert sum(1 + len(group.folded) for group in groups if group.rung != BEYOND) >= cut
    assert len(searched) == 1
