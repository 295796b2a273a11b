import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.relevance import CIDErD, Degrees, HumanJudgements, TfIdf, answers_caption_pairs
from rungwise.relevance.combine import Maximum, WeightedSum, mean, pair_degrees, to_unit_interval
from rungwise.relevance.combine._combinations import Calibrated


class Matrix(Degrees):
    def __init__(self, matrix):
        self.matrix = np.asarray(matrix, np.float32)
        super().__init__(self.matrix.shape)

    def block(self, images, captions):
        return self.matrix[np.ix_(images, captions)]

    def options(self):
        return {"matrix": self.matrix.tolist()}


def test_combinations_equal_the_arithmetic_on_matrices():
    draw = np.random.default_rng(0)
    a, b = draw.normal(size=(2, 4, 6)).astype(np.float32)
    np.testing.assert_allclose(WeightedSum([Matrix(a), Matrix(b)], [0.3, 2]).dense(), 0.3 * a + 2 * b, rtol=1e-5)
    np.testing.assert_allclose(mean([Matrix(a), Matrix(b)]).dense(), (a + b) / 2, rtol=1e-5)
    np.testing.assert_array_equal(Maximum([Matrix(a), Matrix(b)]).dense(), np.maximum(a, b))


def test_combining_leaves_the_sources_as_they_were():
    a = np.ones((2, 2), np.float32)
    for combination in (WeightedSum([Matrix(a), Matrix(2 * a)], [1, 1]), Maximum([Matrix(a), Matrix(2 * a)])):
        combination.dense()
    np.testing.assert_array_equal(a, np.ones((2, 2)))


def test_a_combination_is_stale_when_a_source_changes():
    captions, owners = ["a dog", "a cat"], [0, 1]
    first, second = CIDErD(captions, owners), TfIdf(captions, owners)
    changed = TfIdf(captions, owners, orders=2)
    hashes = {
        mean([first, second]).content_hash(),
        mean([first, changed]).content_hash(),
        mean([second, first]).content_hash(),
        WeightedSum([first, second], [1, 2]).content_hash(),
        Maximum([first, second]).content_hash(),
        Calibrated(first, [0, 1], [0, 1]).content_hash(),
        Calibrated(first, [0, 2], [0, 1]).content_hash(),
    }
    assert len(hashes) == 7


def test_to_unit_interval_is_a_straight_line():
    degrees = to_unit_interval(Matrix([[-2, 0, 6], [2, 2, 2]])).dense()
    np.testing.assert_allclose(degrees, [[0, 0.25, 1], [0.5, 0.5, 0.5]])
    with pytest.raises(UserError, match="all 4 sampled degrees are 1"):
        to_unit_interval(Matrix(np.ones((2, 2))))


def test_pair_degrees_follow_the_order_of_the_pairs():
    matrix = np.arange(12).reshape(3, 4)
    assert pair_degrees(Matrix(matrix), [2, 0, 2, 1], [3, 1, 0, 1]).tolist() == [11, 1, 8, 5]
    assert pair_degrees(Matrix(matrix), [], []).tolist() == []


def test_bad_input_gets_one_line():
    a, b = Matrix(np.ones((2, 2))), Matrix(np.ones((2, 3)))
    for call, message in (
        (lambda: mean([a, b]), "cannot be combined"),
        (lambda: mean([]), "cannot be combined"),
        (lambda: WeightedSum([a], [1, 2]), "2 weights for 1 sources"),
        (lambda: Calibrated(a, [1, 0], [0, 1]), "knots must rise"),
        (lambda: Calibrated(a, [0, 1], [1, 0]), "values must not fall"),
        (lambda: Calibrated(a, [0, 1], [1]), "two lists of one length"),
    ):
        with pytest.raises(UserError, match=message) as caught:
            call()
        assert "\n" not in str(caught.value)


def test_sources_of_different_captions_are_refused():
    captions, owners = ["a dog", "a cat"], [0, 1]
    one = CIDErD(captions, owners)
    for other in (TfIdf(["a dog", "a fox"], owners), TfIdf(captions, [1, 0])):
        for combine in (mean, Maximum, lambda sources: mean([sources[0], Calibrated(sources[1], [0, 1], [0, 1])])):
            with pytest.raises(UserError, match="different captions cannot be combined"):
                combine([one, other])
    assert Maximum([Matrix(np.ones((2, 2))), one]).captions_hash == one.captions_hash


def test_pairs_that_nobody_knows_rank_last():
    human = HumanJudgements([0, 1], [1, 0], [4, 3], (2, 3))
    counted = Matrix(np.ones((2, 3)))
    for source in (WeightedSum([counted, human], [1, 1]), Maximum([counted, human]), Calibrated(human, [0, 5], [0, 1])):
        assert source.topk(2)[0].tolist() == [[1, 0], [0, 1]]
        assert source.topk(1, "t2i")[0].ravel().tolist() == [1, 0, 0]


def test_to_unit_interval_goes_by_the_known_degrees():
    degrees = to_unit_interval(HumanJudgements([0, 0, 1], [0, 1, 2], [1, 2, 5], (2, 3))).dense()
    np.testing.assert_allclose(degrees, [[0, 0.25, np.nan], [np.nan, np.nan, 1]])
    with pytest.raises(UserError, match="no degree of the sampled pairs is known"):
        to_unit_interval(HumanJudgements([], [], [], (2, 3)))


def test_knots_that_are_no_numbers_are_refused():
    source = Matrix([[0, 1, np.nan]])
    with pytest.raises(UserError, match="a knot or a value is not a number"):
        Calibrated(source, [0, np.nan], [0, 1])


def test_to_unit_interval_goes_by_all_judgements_where_they_are_few():
    images, captions = np.arange(40), np.arange(40) * 2
    human = HumanJudgements(images, captions, np.linspace(1, 5, 40), (1000, 2000))
    assert to_unit_interval(human, pairs=1000).knots.tolist() == [1, 5]
    assert to_unit_interval(human, images=range(10)).knots.tolist() == pytest.approx([1, human.grades[9]])


def captioned(kind, **options):
    return kind(["a dog", "a cat", "the dog runs", "a dog"], [0, 1, 2, 2], **options)


def test_combinations_of_sources_of_caption_pairs_are_of_caption_pairs():
    words, pairs = captioned(TfIdf), captioned(TfIdf, orders=2)
    batch = [2, 0, 3]
    a, b = (source.pair_block(batch, batch) for source in (words, pairs))
    for source, wanted in (
        (WeightedSum([words, pairs], [0.3, 2]), 0.3 * a + 2 * b),
        (Maximum([words, pairs]), np.maximum(a, b)),
        (Calibrated(words, [0, 1], [0, 10]), 10 * a),
        (mean([Calibrated(words, [0, 1], [0, 10]), Maximum([pairs])]), (10 * a + b) / 2),
    ):
        assert answers_caption_pairs(source)
        np.testing.assert_allclose(source.pair_block(batch, batch), wanted, rtol=1e-6)
        with pytest.raises(UserError, match="caption positions run -1"):
            source.pair_block([-1], [0])


def test_a_source_without_caption_pairs_is_named():
    words, cider = captioned(TfIdf), captioned(CIDErD)
    for source in (mean([words, cider]), Maximum([words, mean([cider])]), Calibrated(cider, [0, 1], [0, 1])):
        assert not answers_caption_pairs(source)
        with pytest.raises(UserError, match="CIDErD: has no degrees of captions with captions"):
            source.pair_block([0], [1])
