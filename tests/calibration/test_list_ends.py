import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rungwise.calibration import BEYOND, UNRELATED, Background, Calibration, ListEnds
from rungwise.core import UserError


def noise(seed: int, count: int = 100) -> list[float]:
    """Scores of a list in which nothing fits: the best of many candidates."""
    drawn = np.random.default_rng(seed).normal(0.1, 0.03, 5000)
    return sorted(drawn.tolist(), reverse=True)[:count]


def ask(text: str) -> list[float]:
    return noise(UNRELATED.index(text))


def list_with(answers: list[float], seed: int = 900) -> list[float]:
    return sorted([*answers, *noise(seed)], reverse=True)[:100]


@pytest.fixture(scope="module")
def ends() -> ListEnds:
    return ListEnds.of_lists(ask)


def test_each_text_is_asked_once_and_what_stands_above_their_best_hits_is_shown(ends):
    asked = []
    ListEnds.of_lists(lambda text: asked.append(text) or ask(text))
    assert asked == list(UNRELATED)
    judged = ends.judge(list_with([0.61, 0.6, 0.58]))
    assert judged.cut == 3
    assert (judged.rungs[:3] < BEYOND).all()
    assert (judged.rungs[3:] == BEYOND).all()
    assert (np.diff(judged.degrees) <= 0).all()


def test_of_texts_that_fit_nothing_hardly_any_shows_a_hit(ends):
    shown = [ends.judge(noise(seed)).cut > 0 for seed in range(1000, 1200)]
    assert np.mean(shown) < 0.2, "one in ten is what the standard allows"


def test_it_is_the_calibration_of_lists_as_if_they_were_all_candidates(ends):
    rows = np.array([ask(text) for text in UNRELATED])
    for answers in ([], [0.3], [0.5, 0.45, 0.2]):
        scores = list_with(answers)
        expected = Calibration.unsupervised(rows).judge_hits(
            np.array(scores), Background(np.array(scores), len(scores))
        )
        found = ends.judge(scores)
        assert found.cut == expected.cut
        np.testing.assert_array_equal(found.degrees, expected.degrees)


@settings(max_examples=30, deadline=None)
@given(st.floats(1e-3, 1e3), st.floats(-50, 50))
def test_the_unit_and_the_zero_of_scores_make_no_difference(unit, zero):
    plain = ListEnds.of_lists(ask)
    other = ListEnds.of_lists(lambda text: [unit * score + zero for score in ask(text)])
    for answers in ([], [0.6], [0.6, 0.55, 0.5]):
        scores = list_with(answers)
        judged = other.judge([unit * score + zero for score in scores])
        assert judged.cut == plain.judge(scores).cut
        np.testing.assert_allclose(judged.degrees, plain.judge(scores).degrees, atol=1e-6)


def test_a_list_that_a_filter_shortened_is_compared_with_the_lists_of_unrelated_texts(ends):
    assert ends.judge([0.6, 0.58]).cut == 2, "all that the filter left are answers"
    assert ends.judge([0.6]).cut == 1
    assert ends.judge([0.15, 0.12]).cut == 0
    assert ends.judge([]).cut == 0


def test_lists_of_words_may_be_short_or_empty():
    ends = ListEnds.of_lists(lambda text: [1.2, 0.8][: len(text) % 3])
    assert ends.judge([9.0, 8.5, 1.0]).cut == 2


def test_scores_of_the_list_alone():
    ends = ListEnds(Calibration.unsupervised())
    assert 3 <= ends.judge(list_with([0.9, 0.88, 0.87])).cut <= 10, (
        "its later hits are the best of those that do not fit"
    )
    one = ends.judge([0.4])
    assert (one.cut, one.degrees.tolist(), one.rungs.tolist()) == (1, [0.0], [3])


def test_a_calibration_of_judged_lists():
    generator = np.random.default_rng(5)
    scores, degrees = [], []
    for query in range(200):
        right = generator.integers(0, 6)
        answers = generator.normal(0.4, 0.05, right)
        irrelevant = np.array(noise(query + 50)[: 100 - right])
        order = np.argsort(-np.concatenate([answers, irrelevant]), kind="stable")
        scores.append(np.concatenate([answers, irrelevant])[order])
        degrees.append((order < right).astype(float))
    ends = ListEnds(Calibration.fit(np.array(scores[:150]), np.array(degrees[:150]), relevant_from=1))
    errors = [abs(ends.judge(row).cut - truth.sum()) for row, truth in zip(scores[150:], degrees[150:], strict=True)]
    assert np.mean(errors) < 0.5
    assert ends.names == ("exactly", "close", "loosely related")


@pytest.fixture(scope="module")
def vectors() -> np.ndarray:
    rows = np.random.default_rng(3).normal(size=(3000, 24))
    rows[:5] = rows[0] + 0.2 * rows[:5]
    return rows.astype(np.float32)


@pytest.mark.parametrize("metric", ["cosine", "inner", "l2"])
def test_vectors_judge_as_an_index_does(vectors, metric):
    sample = vectors[::2]
    texts = np.random.default_rng(4).normal(size=(48, 24)).astype(np.float32)
    query = vectors[0]

    def score(one, other):
        if metric == "l2":
            return -sum((a - b) ** 2 for a, b in zip(one.tolist(), other.tolist(), strict=True))
        product = sum(a * b for a, b in zip(one.tolist(), other.tolist(), strict=True))
        return product if metric == "inner" else product / np.linalg.norm(one) / np.linalg.norm(other)

    scores = np.sort([score(query, row) for row in vectors])[::-1][:50]
    foreign = np.array([[score(text, row) for row in sample] for text in texts])
    background = Background(np.array([score(query, row) for row in sample]), 3000)
    expected = Calibration.unsupervised(foreign).judge_hits(scores, background)
    found = ListEnds.of_vectors(sample, 3000, unrelated=texts, metric=metric).judge(scores, query)
    assert found.cut == expected.cut
    np.testing.assert_allclose(found.degrees, expected.degrees, atol=1e-5)
    if metric != "l2":
        assert found.cut == 5


@pytest.mark.parametrize(
    ("scores", "line"),
    [
        ([0.1, 0.2], "scores: a hit scores higher than the one before it; sort them, and negate distances"),
        ([0.1, float("nan")], "scores: one is not finite; leave hits without a score out"),
        (["high"], "scores: not all are numbers; give the falling scores of the hits"),
        ([[0.1]], "scores: 2 dimensions; give the scores of one query, (hits,)"),
    ],
)
def test_wrong_scores_are_refused_in_one_line(ends, scores, line):
    with pytest.raises(UserError) as refused:
        ends.judge(scores)
    assert str(refused.value) == line


def test_other_mistakes_are_refused_in_one_line(ends, vectors):
    of_vectors = ListEnds.of_vectors(vectors, 3000)
    for mistake, word in (
        (lambda: ends.judge([0.1], vectors[0]), "leave the vector out"),
        (lambda: of_vectors.judge([0.1]), "give the query's vector"),
        (lambda: of_vectors.judge([0.1], vectors[0][:7]), "(n, 24)"),
        (lambda: of_vectors.judge([37.0], vectors[0]), "37 is no cosine"),
        (lambda: ListEnds.of_vectors(vectors, 10), "total is 10"),
        (lambda: ListEnds.of_vectors(vectors[0], 10), "shape (24,)"),
        (lambda: ListEnds.of_vectors(vectors, 3000, unrelated=vectors, calibration=ends.calibration), "leave one"),
        (lambda: ListEnds.of_lists(lambda text: []), "no unrelated text gets a hit"),
        (lambda: ListEnds.of_lists(lambda text: [1 / (60 + rank) for rank in range(9)]), "ranks are fused"),
        (lambda: ListEnds.of_lists(ask, texts=UNRELATED[:9]), "10 or more"),
        (lambda: ListEnds(ends.calibration, depth=0), "depth is 0"),
    ):
        with pytest.raises(UserError, match=".") as refused:
            mistake()
        assert word in str(refused.value)
        assert "\n" not in str(refused.value)
