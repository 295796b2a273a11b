import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.relevance import CaptionPairSource, CaptionSource
from rungwise.relevance.combine import Cascade

CAPTIONS = ["a", "b", "a", "c", "d", "e"]
OWNERS = [0, 0, 1, 1, 2, 3]
GRID = np.random.default_rng(0).random((5, 5)).astype(np.float32)


class Coarse(CaptionPairSource):
    """A fixed score for each two texts."""

    def __init__(self, grid=GRID, captions=CAPTIONS, **options):
        super().__init__(captions, OWNERS, **options)
        self.letters = np.array([ord(text) - ord("a") for text in self.captions])
        self.grid = grid

    def pair_block(self, first, second):
        return self.grid[np.ix_(self.letters[first], self.letters[second])]


class Fine(Coarse):
    """Ten times the score, and a list of the texts that it was asked for."""

    def __init__(self, grid=GRID, captions=CAPTIONS, *, symmetric=False, fails_after=None):
        super().__init__(grid, captions)
        self.symmetric = symmetric
        self.fingerprint = f"fine {grid.sum()}"
        self.asked = []
        self.fails_after = fails_after

    def pair_scores(self, first, second):
        if self.fails_after is not None and len(self.asked) >= self.fails_after:
            raise KeyboardInterrupt
        self.asked += [(self.captions[a], self.captions[b]) for a, b in zip(first, second, strict=True)]
        return 10 * self.grid[self.letters[first], self.letters[second]]


@pytest.mark.parametrize("below", ["zero", "coarse"])
@pytest.mark.parametrize("reference", ["paired", "max", "mean"])
def test_equals_its_definition(below, reference):
    fine = Fine()
    cascade = Cascade(Coarse(), fine, threshold=0.5, below=below, reference=reference)
    grid = np.where(GRID >= 0.5, 10 * GRID, GRID if below == "coarse" else 0)
    np.testing.assert_allclose(cascade.dense(), Coarse(grid, reference=reference).dense(), rtol=1e-6)
    assert len(fine.asked) == len(set(fine.asked)), "no pair of texts is scored twice"
    assert all(GRID[ord(a) - 97, ord(b) - 97] >= 0.5 for a, b in fine.asked)


def test_a_score_equal_to_the_threshold_is_refined():
    grid = np.full((5, 5), 0.5, np.float32)
    assert (Cascade(Coarse(grid), Fine(grid), threshold=0.5).dense() == 5).all()


def test_symmetric_sources_score_each_two_texts_once():
    grid = (GRID + GRID.T) / 2
    fine = Fine(grid, symmetric=True)
    Cascade(Coarse(grid), fine, threshold=0).dense()
    assert len(fine.asked) == 5 * 6 // 2 == len({frozenset(pair) for pair in fine.asked})


def test_a_second_run_scores_nothing(tmp_path):
    first = Cascade(Coarse(), Fine(), threshold=0.5, cache=tmp_path / "scores").dense()
    fine = Fine()
    again = Cascade(Coarse(), fine, threshold=0.5, cache=tmp_path / "scores")
    np.testing.assert_array_equal(again.dense(), first)
    assert fine.asked == []
    assert again.report.scored == 0
    assert again.report.refined > 0


def test_an_interrupted_run_is_resumed(tmp_path, monkeypatch):
    monkeypatch.setattr("rungwise.relevance.storage.pair_cache._FEWEST", 2)
    whole = Fine()
    wanted = Cascade(Coarse(), whole, threshold=0.3).dense()
    stopped = Fine(fails_after=6)
    with pytest.raises(KeyboardInterrupt):
        Cascade(Coarse(), stopped, threshold=0.3, cache=tmp_path / "scores").dense()
    resumed = Fine()
    np.testing.assert_array_equal(Cascade(Coarse(), resumed, threshold=0.3, cache=tmp_path / "scores").dense(), wanted)
    assert len(stopped.asked) == 6
    assert not set(stopped.asked) & set(resumed.asked)
    assert set(stopped.asked) | set(resumed.asked) == set(whole.asked)


def test_a_threshold_must_be_a_number():
    with pytest.raises(UserError, match="threshold must be a number, got nan"):
        Cascade(Coarse(), Fine(), threshold=float("nan"))


def test_the_cache_is_of_texts_and_one_model(tmp_path):
    Cascade(Coarse(), Fine(), threshold=0, cache=tmp_path / "scores").dense()
    turned = list(reversed(CAPTIONS))
    same = Fine(captions=turned)
    Cascade(Coarse(captions=turned), same, threshold=0, cache=tmp_path / "scores").dense()
    assert same.asked == []
    other = Fine(GRID + 1)
    Cascade(Coarse(), other, threshold=0, cache=tmp_path / "scores").dense()
    assert len(other.asked) == 25


def test_the_report_counts_and_extrapolates():
    seen = []
    cascade = Cascade(Coarse(), Fine(), threshold=0.5, progress=seen.append)
    cascade.dense()
    report = cascade.report
    texts = np.array([ord(text) - 97 for text in CAPTIONS])
    assert report.considered == 36
    assert report.refined == (GRID[np.ix_(texts, texts)] >= 0.5).sum()
    assert report.scored == (GRID >= 0.5).sum()
    assert report.all_pairs == 25
    assert report.full_seconds == pytest.approx(25 * report.seconds / report.scored)
    assert seen[-1] == report
    assert Cascade(Coarse(), Fine(symmetric=True)).report.all_pairs == 15


def test_hash_follows_threshold_and_sources():
    hashes = {
        cascade.content_hash()
        for cascade in (
            Cascade(Coarse(), Fine()),
            Cascade(Coarse(), Fine(), threshold=0.7),
            Cascade(Coarse(), Fine(), below="coarse"),
            Cascade(Coarse(), Fine(GRID + 1)),
            Cascade(Coarse(), Fine(), reference="mean"),
        )
    }
    assert len(hashes) == 5
    assert Cascade(Coarse(), Fine()).content_hash() in hashes


def test_sources_that_do_not_fit_are_refused():
    class Consensus(CaptionSource):
        block = options = None

    with pytest.raises(UserError, match="Consensus scores a caption against all captions of an image"):
        Cascade(Consensus(CAPTIONS, OWNERS), Fine())
    with pytest.raises(UserError, match="different captions"):
        Cascade(Coarse(captions=CAPTIONS[::-1]), Fine())
    with pytest.raises(UserError, match="'zero' or 'coarse'"):
        Cascade(Coarse(), Fine(), below="fine")
