import numpy as np
import pytest

from rungwise.core.errors import UserError
from rungwise.relevance.base import Degrees
from rungwise.relevance.describe import describe, rung_shares, sample, thresholds


class Matrix(Degrees):
    def __init__(self, matrix, owners=None):
        self.matrix = np.asarray(matrix, np.float32)
        super().__init__(self.matrix.shape)
        self.image_of_caption = owners

    def block(self, images, captions):
        return self.matrix[np.ix_(images, captions)]

    def options(self):
        return {}


@pytest.fixture
def graded():
    """100 images x 500 captions, degrees even in 0..1 for strangers and 2 for a caption's own image."""
    draw = np.random.default_rng(0)
    owners = np.repeat(np.arange(100), 5)
    matrix = draw.random((100, 500))
    matrix[owners, np.arange(500)] = 2
    return Matrix(matrix, owners)


def test_a_sample_holds_the_own_captions_of_its_images(graded):
    seen = sample(graded, pairs=5000)
    assert 4000 < seen.degrees.size <= 6000
    assert (seen.own.sum(axis=0) == 1).all()
    assert (seen.degrees[seen.own] == 2).all()
    assert seen.others.max() <= 1


def test_thresholds_put_the_asked_shares_on_the_rungs(graded):
    first, second = thresholds(graded, (0.01, 0.1))
    others = graded.matrix[graded.matrix < 2]
    assert (others >= first).mean() == pytest.approx(0.01, abs=1e-4)
    assert ((others >= second) & (others < first)).mean() == pytest.approx(0.1, abs=1e-4)


@pytest.mark.parametrize("shares", [(), (0.5, 0.5), (0, 0.1), (-0.1,)])
def test_shares_that_make_no_rungs_are_refused(graded, shares):
    with pytest.raises(UserError, match="shares must be positive and add up to less than 1"):
        thresholds(graded, shares)


def test_a_source_too_coarse_for_the_shares_is_refused():
    matrix = np.zeros((50, 60))
    matrix[0] = 1
    with pytest.raises(UserError, match="finer degrees"):
        thresholds(Matrix(matrix), (0.1,))
    assert thresholds(Matrix(matrix), (0.02,)) == (1.0,)
    with pytest.raises(UserError, match="do not fall"):
        thresholds(Matrix(matrix), (0.011, 0.004))


def test_a_description_counts_every_other_pair(graded):
    found = describe(graded, at=[0.75, 0.0])
    assert found.pairs == 50_000
    assert found.own == 2
    assert found.others == pytest.approx(0.5, abs=0.01)
    assert found.counts.sum() == 50_000 - 500
    assert found.shares[0.75] == pytest.approx(0.25, abs=0.01)
    assert found.shares[0.0] == 1
    assert "at or above 0.75" in str(found)


def test_the_shares_reached_are_told(graded):
    cuts = thresholds(graded, (0.01, 0.1))
    assert rung_shares(graded, cuts) == pytest.approx((0.01, 0.1), abs=1e-4)
    coarse = np.zeros((10, 100))
    coarse[:2] = 1
    assert thresholds(Matrix(coarse), (0.11,)) == (1.0,)
    assert rung_shares(Matrix(coarse), (1.0,)) == pytest.approx((0.2,))
    with pytest.raises(UserError, match="there are none"):
        rung_shares(Matrix([[np.nan]]), (1.0,))


def test_own_degrees_that_are_not_known_do_not_hide_the_others(graded):
    matrix = graded.matrix.copy()
    matrix[0, 0] = np.nan
    assert describe(Matrix(matrix, graded.image_of_caption)).own == 2
