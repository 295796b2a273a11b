import numpy as np
import pytest

from rungwise.core.errors import UserError
from rungwise.relevance import CIDErD, TfIdf
from rungwise.relevance.caption_pairs import answers_caption_pairs, caption_pairs, caption_positions
from rungwise.relevance.combine import Calibrated, Maximum, mean

CAPTIONS, OWNERS = ["a dog runs", "a cat sleeps", "a dog sleeps"], [0, 1, 1]


def test_a_combination_answers_if_all_its_sources_do():
    pairs, images = TfIdf(CAPTIONS, OWNERS), CIDErD(CAPTIONS, OWNERS)
    for one, does in ((pairs, True), (images, False)):
        for combined in (mean([pairs, one]), Maximum([one]), Calibrated(one, [0, 1], [0, 1])):
            assert answers_caption_pairs(combined) == does


def test_a_source_that_answers_is_handed_on():
    source = TfIdf(CAPTIONS, OWNERS)
    assert caption_pairs(source) is source


def test_one_that_does_not_is_refused_by_its_name():
    with pytest.raises(UserError, match="CIDErD: has no degrees of captions with captions; tfidf, cbow") as caught:
        caption_pairs(CIDErD(CAPTIONS, OWNERS))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("first", "second"), [([0, 3], [0]), ([0], [-1])])
def test_positions_outside_are_refused(first, second):
    with pytest.raises(UserError, match=r"must lie in 0\.\.2"):
        caption_positions(first, second, 3)
    with pytest.raises(UserError, match=r"must lie in 0\.\.2"):
        TfIdf(CAPTIONS, OWNERS).pair_block(first, second)


def test_positions_become_arrays():
    first, second = caption_positions([], (2, 0), 3)
    assert first.dtype == second.dtype == np.int64
    assert (first.tolist(), second.tolist()) == ([], [2, 0])
