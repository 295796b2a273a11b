"""Also tests rungwise.index.search._pipeline: what stands before the end comes first, on every page."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rungwise.calibration import BEYOND, RUNGS, Background, Known, QueryJudgement
from rungwise.index import Condition, Where
from rungwise.index._ranking import POOL, JudgedRanking, PictureCandidates, RankedGroup
from rungwise.index.cutoff._judge import MOST_JUDGED, advice, judged
from rungwise.index.query import UnknownWord
from rungwise.index.search import groups_of
from rungwise.similarity import Cosine
from tests.index.toy_store import ToyStore

ROWS, WIDTH = 390, 16


class Threshold:
    """Hits of at least these scores are exactly, close, loosely related."""

    source, names, relevant_from = "thresholds", RUNGS, 0.5

    def __init__(self, *least: float) -> None:
        self.least = least
        self.asked: list[int] = []

    def judge_hits(self, scores: np.ndarray, background: Background, known: Known | None = None) -> QueryJudgement:
        self.asked.append(len(scores))
        rungs = 1 + sum((scores < one).astype(np.int64) for one in self.least)
        cut = int((rungs < BEYOND).sum())
        return QueryJudgement(np.clip(scores, 0, 1).astype(np.float64), rungs, cut, float(cut > 0))


def _store() -> ToyStore:
    rng = np.random.default_rng(3)
    vectors = rng.normal(size=(ROWS, WIDTH)).astype(np.float32)
    vectors[1::3] = vectors[::3]  # near-duplicates
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    store = ToyStore(WIDTH, Cosine())
    store.upsert([f"p{row}" for row in range(ROWS)], vectors, [{"n": row} for row in range(ROWS)])
    return store


STORE = _store()
QUERY = np.eye(1, WIDTH, dtype=np.float32)
NO_SAMPLE = Background(np.zeros(2), ROWS)


def unknown(ids: object) -> None:
    """Nothing is known of the hits."""


def candidates(where: Where | None = None) -> PictureCandidates:
    return PictureCandidates(STORE, QUERY, None, where or Where(), exact=False)


def judged_by(*least: float) -> JudgedRanking:
    return judged(candidates(), POOL, Threshold(*least), NO_SAMPLE, unknown, deeper=False)


def groups(
    needed: int, where: Where | None = None, least: tuple[float, ...] = (0.5, 0.4, 0.3), **other
) -> list[RankedGroup]:
    options = {"by_words": (), "reorder": None, "fold": True, "diversity": 0.0, **other}
    return groups_of(candidates(where), needed, judged=judged_by(*least), **options)


@settings(max_examples=40)
@given(
    st.integers(1, 60),
    st.integers(1, 60),
    st.lists(st.integers(0, ROWS - 1), unique=True, max_size=40),
    st.integers(0, 40),
    st.booleans(),
    st.sampled_from([0.0, 0.5]),
    st.booleans(),
    st.lists(st.floats(-0.2, 0.6), min_size=3, max_size=3),
    st.sampled_from([None, 200, 380]),
)
def test_pages_follow_each_other_and_bands_do_not_fall_back(
    short: int, more: int, words: list, sure: int, fold: bool, diversity: float, turn: bool, least: list, since: int
) -> None:
    by_words = [f"p{row}" for row in words]
    certain = frozenset(by_words[:sure])
    reorder = (lambda ids: [*reversed(ids[:30]), *ids[30:]]) if turn else None
    where = None if since is None else Where((Condition("n", ">=", since),))
    by_words = [one for one in by_words if since is None or int(one[1:]) >= since]
    asked = {"by_words": by_words, "reorder": reorder, "fold": fold, "diversity": diversity, "certain": certain}
    thresholds = tuple(sorted(least, reverse=True))
    few, many = (groups(needed, where, thresholds, **asked) for needed in (short, short + more))
    said = [[(one.id, one.rung, one.degree) for one in part] for part in (few, many)]
    assert said[0][:short] == said[1][:short]
    ended = [[one for one in part if one[1] < BEYOND] for part in said]
    assert ended[0] == ended[1]
    rungs = [one.rung for one in many]
    assert rungs == sorted(rungs)
    seen = [one for group in many for one in (group.id, *group.folded)]
    assert len(seen) == len(set(seen))
    before = {one for group in many if group.rung < BEYOND for one in (group.id, *group.folded)}
    assert certain & set(by_words) <= before


def test_without_a_filter_bands_are_those_of_the_scores() -> None:
    found = groups(60, fold=False)
    scores = candidates().scores([one.id for one in found])
    expected = [1 if s >= 0.5 else 2 if s >= 0.4 else 3 if s >= 0.3 else 4 for s in scores]
    assert [one.rung for one in found] == expected
    assert expected.count(1) > 0
    assert expected.count(4) > 0


def test_a_filter_does_not_change_how_a_picture_is_judged() -> None:
    everything = {one.id: one.rung for one in groups(ROWS, fold=False)}
    filtered = groups(ROWS, Where((Condition("n", ">=", 300),)), fold=False)
    assert {one.id: one.rung for one in filtered} == {
        one: rung for one, rung in everything.items() if int(one[1:]) >= 300
    }


def test_full_text_says_which_and_vectors_say_how_many() -> None:
    plain = groups(ROWS, fold=False)
    far = [f"p{row}" for row in range(ROWS) if f"p{row}" not in candidates().nearest(POOL)][:2]
    found = groups(ROWS, fold=False, by_words=far, certain=frozenset(far[:1]))
    for rung in (1, 2):
        assert sum(one.rung == rung for one in found) == sum(one.rung == rung for one in plain)
    assert sum(one.rung < BEYOND for one in found) == sum(one.rung < BEYOND for one in plain) + 1
    assert next(one.rung for one in found if one.id == far[0]) < BEYOND
    assert next(one.rung for one in found if one.id == far[1]) == BEYOND
    degrees = [one.degree for one in found if one.rung < BEYOND]
    assert degrees == sorted(degrees, reverse=True)


@pytest.mark.parametrize(("deeper", "least", "asked"), [
    (False, (9, 9, 0.3), [POOL]), (False, (9, 9, -1), [POOL, ROWS]), (True, (9, 9, -1), [POOL, ROWS]),
])  # fmt: skip
def test_more_is_looked_at_where_all_is_relevant(deeper: bool, least: tuple, asked: list) -> None:
    judge = Threshold(*least)
    found = judged(candidates(), POOL, judge, NO_SAMPLE, unknown, deeper=deeper)
    assert judge.asked == asked
    assert ROWS < MOST_JUDGED
    assert len(found.scores) == asked[-1]


def test_what_was_not_looked_at_stands_beyond_the_end() -> None:
    found = judged_by(0.5, 0.4, -1)
    rungs, degrees = found.of(["new", "newer", "last"], [2.0, 0.45, -0.99])
    assert rungs.tolist()[:2] == [1, 2]
    assert degrees[0] == pytest.approx(found.judgement.degrees[0])
    nothing = JudgedRanking((), np.zeros(0), QueryJudgement(np.zeros(0), np.zeros(0, int), 0, 0.0), 0.5, "")
    assert nothing.of(["a"], [0.3])[0].tolist() == [BEYOND]


class ByTexts(Threshold):
    """Hits whose texts state the query are exactly; others are judged by their scores."""

    def judge_hits(self, scores: np.ndarray, background: Background, known: Known | None = None) -> QueryJudgement:
        found = super().judge_hits(scores, background, known)
        assert known is not None
        assert known.stated is not None
        rungs = np.where(known.stated == 1, 1, found.rungs)
        return QueryJudgement(found.degrees, rungs, int((rungs < BEYOND).sum()), 1.0)


def test_pictures_found_by_words_are_judged_wherever_their_vectors_stand() -> None:
    far = [one for one in candidates().nearest(ROWS) if one not in candidates().nearest(POOL)][:2]
    stating = {far[0], candidates().nearest(5)[4]}
    asked: list[tuple[str, ...]] = []
    nearest: list[int | None] = []

    def known(ids: tuple[str, ...]) -> Known:
        asked.append(ids)
        return Known(stated=np.array([float(one in stating) for one in ids]))

    class Noting(ByTexts):
        def judge_hits(self, scores, background, known=None):
            nearest.append(known.nearest)
            return super().judge_hits(scores, background, known)

    found = judged(candidates(), POOL, Noting(9, 0.4, 0.3), NO_SAMPLE, known, deeper=False, by_words=far)
    assert nearest == [POOL]
    assert set(far) < set(asked[0])
    assert (np.diff(found.scores) <= 0).all()
    rungs, _ = found.of(far, candidates().scores(far))
    assert rungs.tolist() == [1, BEYOND]
    ranked = groups_of(
        candidates(), 60, by_words=far, reorder=None, fold=False, diversity=0.0, judged=found, certain=far[:1]
    )
    assert {one.id for one in ranked if one.rung == 1} == stating
    assert [one.rung for one in ranked] == sorted(one.rung for one in ranked)
    # A reranker read the pictures: its order says which stand on the first rung.
    turned = groups_of(
        candidates(), 60, by_words=(), reorder=lambda ids: list(reversed(ids)), fold=False, diversity=0.0, judged=found
    )
    assert turned[0].id not in stating


def test_advice_names_what_may_help() -> None:
    unknown = (UnknownWord("sneakers", ("shoes",)), UnknownWord("zyx"))
    lines = advice(relevant_without_filter=1, unknown=unknown, by_words=1, has_words=True)
    assert "leaves out the one picture that is relevant" in lines[0]
    assert "in place of 'sneakers' try: shoes" in lines
    assert "leave out 'zyx', which the model does not know" in lines
    assert any("1 picture has words of the query" in line for line in lines)
    assert advice(relevant_without_filter=None, unknown=(), by_words=0, has_words=False) == ()
    assert "1,000 or more" in advice(relevant_without_filter=1000, unknown=(), by_words=0, has_words=False)[0]
