import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.relevance import Degrees
from rungwise.relevance.description.describe import describe, rung_shares, sample, thresholds


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


def test_thresholds_of_the_training_split_are_its_own(graded):
    """Degrees of test pairs are twice as high here, so that the whole has other thresholds than the training split."""
    train, test = np.arange(60), np.arange(60, 100)
    matrix = graded.matrix.copy()
    matrix[60:] *= 2
    whole, owners = Matrix(matrix, graded.image_of_caption), graded.image_of_caption
    of_train = np.flatnonzero(np.isin(owners, train))
    alone = Matrix(matrix[np.ix_(train, of_train)], owners[of_train])
    cuts = thresholds(whole, (0.01, 0.1), images=train, captions=of_train)
    assert cuts == thresholds(alone, (0.01, 0.1))
    assert cuts == thresholds(whole, (0.01, 0.1), images=train), "whose captions they are is known"
    assert cuts[0] < 1 < thresholds(whole, (0.01, 0.1))[0]
    matrix[test] = matrix[:, ~np.isin(owners, train)] = 7
    assert cuts == thresholds(whole, (0.01, 0.1), images=train, captions=of_train)


def test_thresholds_of_positions_where_ownership_is_not_known(graded):
    unknown = Matrix(graded.matrix)
    (cut,) = thresholds(unknown, (0.5,), images=[3, 5], captions=[0, 1, 2, 100])
    assert cut == np.sort(graded.matrix[np.ix_([3, 5], [0, 1, 2, 100])].ravel())[::-1][3]


def test_a_sample_of_no_pairs_or_of_positions_outside_is_refused(graded):
    with pytest.raises(UserError, match="no pairs to sample of 0 images"):
        sample(graded, images=[])
    with pytest.raises(UserError, match="image positions run 0..100"):
        sample(graded, images=[0, 100])
    with pytest.raises(UserError, match="no pairs to sample of 1 images and 0 captions"):
        sample(graded, images=[0], captions=[5])


def test_the_histogram_states_its_scale():
    """Every bar can be told from the line that says what a full one is."""
    degrees = np.concatenate([np.zeros(900), np.full(90, 0.5), np.full(9, 1.0)])
    lines = str(describe(Matrix(degrees.reshape(27, 37)), pairs=10_000)).splitlines()
    [at] = [number for number, line in enumerate(lines) if "a full bar" in line]
    assert "logarithm of 1 + its" in lines[at - 1]
    assert "a full bar (40 wide) is 900 pairs" in lines[at]
    assert all(len(line) <= 80 for line in lines[at - 1 :])
    seen = {}
    for line in lines[at + 1 :]:
        count, _, bar = line.split("..")[1].strip().partition(" ")[2].strip().partition(" ")
        seen[int(count.replace(",", ""))] = len(bar)
    assert seen == {900: 40, 90: round(40 * np.log(91) / np.log(901)), 9: round(40 * np.log(10) / np.log(901)), 0: 0}
