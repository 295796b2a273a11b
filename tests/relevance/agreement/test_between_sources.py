import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr

from rungwise.core import UserError
from rungwise.relevance import Degrees, HumanJudgements, load
from rungwise.relevance.agreement._between_sources import agreement
from rungwise.relevance.combine import mean
from rungwise.relevance.combine._combinations import Calibrated


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


@pytest.fixture
def judged(graded):
    """What people said of 60 pairs of the 50,000, 20 of them a picture with its own caption."""
    draw = np.random.default_rng(5)
    captions = np.concatenate([np.arange(20), draw.choice(np.arange(100, 500), 40, replace=False)])
    images = np.concatenate([np.arange(20) // 5, np.repeat(np.arange(10), 4)])
    grades = graded.matrix[images, captions] + draw.normal(scale=0.2, size=60)
    return HumanJudgements(images, captions, grades, (100, 500), image_of_caption=graded.image_of_caption)


def test_agreement_of_a_source_with_itself_its_mirror_and_noise(graded):
    draw = np.random.default_rng(1)
    same = agreement(graded, graded)
    assert (same.pearson, same.spearman, same.top) == pytest.approx((1, 1, 1))
    mirrored = agreement(graded, Matrix(-graded.matrix))
    assert (mirrored.pearson, mirrored.spearman) == pytest.approx((-1, -1))
    noise = agreement(graded, Matrix(draw.random((100, 500))))
    assert abs(noise.spearman) < 0.03
    assert noise.top < 0.1
    assert np.isnan(agreement(graded, Matrix(np.ones((100, 500)))).pearson)
    with pytest.raises(UserError, match="no pairs in common"):
        agreement(graded, Matrix(np.ones((2, 2))))


def test_agreement_is_over_pairs_that_both_know(graded):
    partial = np.where(np.random.default_rng(1).random((100, 500)) < 0.04, graded.matrix, np.nan)
    same = agreement(graded, Matrix(partial), pairs=10**6)
    assert (same.pearson, same.spearman, same.top) == pytest.approx((1, 1, 1))
    assert same.pairs == (~np.isnan(partial) & (graded.matrix < 2)).sum()
    mirrored = agreement(Matrix(-partial), graded, pairs=10**6)
    assert mirrored.spearman == pytest.approx(-1)
    assert mirrored.top < 0.8
    nothing = agreement(graded, Matrix(np.full((100, 500), np.nan)))
    assert nothing.pairs == 0
    assert np.isnan(nothing.pearson)
    assert np.isnan(nothing.top)


def reached(graded, judged, annotated):
    """Judged pairs, the two sides' degrees of them."""
    kept = np.flatnonzero(annotated | ~judged.own)
    images, captions = judged.pairs[kept].T
    return images, graded.matrix[images, captions], judged.grades[kept]


@pytest.mark.parametrize("annotated", [False, True])
def test_sparse_judgements_are_compared_pair_by_pair(graded, judged, annotated):
    images, ours, theirs = reached(graded, judged, annotated)
    for first, second in ((graded, judged), (judged, graded)):
        found = agreement(first, second, annotated=annotated, pairs=100)
        assert (found.pairs, found.annotated) == ((60, 20) if annotated else (40, 0))
        assert found.pearson == pytest.approx(pearsonr(ours, theirs).statistic, abs=1e-6)
        assert found.spearman == pytest.approx(spearmanr(ours, theirs).statistic, abs=1e-6)
    # No image has more than ten judged captions, so that all of them are among the best ten on both sides.
    assert np.bincount(images).max() <= 10
    assert found.top == 1
    assert ("(60 pairs, 20 of them a picture with its own caption)" in str(found)) == annotated


def test_the_best_are_those_of_the_judged(graded):
    captions = np.arange(400, 430)
    backwards = HumanJudgements(np.zeros(30, int), captions, -graded.matrix[0, captions], (100, 500))
    assert agreement(graded, backwards).top == 0
    assert (
        agreement(graded, HumanJudgements(np.zeros(30, int), captions, graded.matrix[0, captions], (100, 500))).top == 1
    )


def test_saved_and_combined_judgements_are_known_by_their_pairs_too(graded, judged, tmp_path):
    wanted = agreement(graded, judged, annotated=True)
    judged.save(tmp_path / "all")
    judged.save(tmp_path / "best", k=50, direction="t2i")
    both = mean([judged, judged])
    for other in (load(tmp_path / "all"), load(tmp_path / "best"), both, Calibrated(judged, [-5, 5], [-5, 5])):
        found = agreement(other, graded, annotated=True)
        assert (found.pairs, found.annotated) == (60, 20)
        assert found.pearson == pytest.approx(wanted.pearson, abs=1e-6)


def test_two_sets_of_judgements_are_compared_where_they_meet(judged):
    images, captions = judged.pairs[10:30].T
    other = HumanJudgements(images, captions, judged.grades[10:30] * 2, (100, 500))
    found = agreement(judged, other, annotated=True)
    assert found.pairs == 20
    assert found.pearson == pytest.approx(1)
    apart = HumanJudgements([99], [0], [1], (100, 500))
    assert agreement(judged, apart).pairs == 0


def test_no_more_pairs_than_asked_for(graded, judged):
    found = agreement(graded, judged, annotated=True, pairs=30)
    assert found.pairs == 30
    assert found == agreement(graded, judged, annotated=True, pairs=30)


def test_galleries_that_were_checked_throughout_are_sampled(graded):
    checked = HumanJudgements(
        [0, 1], [7, 9], [1, 1], (100, 500), closed_images=[0, 1, 2], image_of_caption=graded.image_of_caption
    )
    found = agreement(graded, checked, pairs=10**6)
    assert found.pairs == 3 * 495
