import numpy as np
import pytest

from rungwise.calibration import BEYOND, UNJUDGED_RUNGS, Background
from rungwise.core import UserError
from rungwise.index.cutoff._picture_standard import PictureStandard
from rungwise.similarity import Cosine, unit_rows
from tests.index.toy_store import ToyStore

WIDTH = 32
RNG = np.random.default_rng(4)
TOPICS = RNG.normal(size=(20, WIDTH))
PICTURES = unit_rows(TOPICS[np.arange(400) % 20] + 0.6 * RNG.normal(size=(400, WIDTH))).astype(np.float32)
PATTERNS = unit_rows(RNG.normal(size=(24, WIDTH))).astype(np.float32)


def store(vectors: np.ndarray = PICTURES) -> ToyStore:
    made = ToyStore(WIDTH, Cosine())
    made.upsert([f"p{row}" for row in range(len(vectors))], vectors, [{} for _ in vectors])
    return made


def judged(standard: PictureStandard, query: np.ndarray):  # type: ignore[no-untyped-def]
    cosines = PICTURES @ unit_rows(query[None])[0]
    return standard.judge_hits(np.sort(cosines)[::-1][:200], Background(cosines, len(cosines)))


def test_pictures_of_its_topics_have_something_like_them_and_others_nothing() -> None:
    standard = PictureStandard.of(store(), PATTERNS, PICTURES)
    near = [judged(standard, one) for one in TOPICS + 0.6 * RNG.normal(size=TOPICS.shape)]
    far = [judged(standard, one) for one in RNG.normal(size=(100, WIDTH))]
    assert np.mean([one.cut > 0 for one in near]) > 0.9
    assert np.mean([one.cut > 0 for one in far]) < 0.3
    assert np.mean([one.cut for one in near]) == pytest.approx(20, rel=0.3)
    assert min(one.belief for one in near if one.cut) >= 0.9 - 1e-9
    assert np.median([one.belief for one in far]) < 0.7


def test_the_same_picture_has_degree_one_and_rungs_fall_with_the_rank() -> None:
    found = judged(PictureStandard.of(store(), PATTERNS, PICTURES), PICTURES[7])
    assert found.degrees[0] == pytest.approx(1, abs=1e-5)
    assert found.rungs[0] == 1
    assert (np.diff(found.rungs) >= 0).all()
    assert (np.diff(found.degrees) <= 0).all()
    assert (found.rungs < BEYOND).sum() == found.cut
    assert PictureStandard.names == UNJUDGED_RUNGS


def test_patterns_that_are_like_the_index_do_not_hide_its_own_pictures() -> None:
    """A red disc among drawings of discs is a picture of the index, not one of nothing."""
    alike = PictureStandard.of(store(), PICTURES[:24], PICTURES)
    some = [judged(alike, one).cut > 0 for one in unit_rows(TOPICS[:10] + 0.6 * RNG.normal(size=(10, WIDTH)))]
    assert alike.least < 0.9
    assert np.mean(some) > 0.7


def test_a_model_that_tells_no_pictures_apart_makes_no_standard() -> None:
    with pytest.raises(UserError, match="tells no pictures apart"):
        PictureStandard.of(store(), np.repeat(PATTERNS[:1], 24, axis=0), PICTURES)


def test_two_pictures_are_enough() -> None:
    standard = PictureStandard.of(store(PICTURES[:2]), PATTERNS, PICTURES[:2])
    assert -1 <= standard.least <= 1
