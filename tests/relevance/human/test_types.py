import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.relevance.human import Preferences, RatedPairs, RatedTexts, means_of
from rungwise.relevance.human._types import MOST_RATERS, in_columns

NAN = float("nan")


def test_means_are_those_of_the_ratings_that_are_there():
    ratings = np.array([[1, NAN, 4], [NAN, NAN, NAN], [2, 2, 2]], float)
    np.testing.assert_array_equal(means_of(ratings), [2.5, NAN, 2])
    pairs = RatedPairs("image-caption", "table", ("a",) * 3, ("b", "c", "d"), ratings, ("", "", ""))
    texts = RatedTexts(("a",) * 3, ("b", "c", "d"), ((),) * 3, ratings, ("", "", ""))
    for one in (pairs, texts):
        np.testing.assert_array_equal(one.means, means_of(ratings))
        assert (len(one), one.raters) == (3, 3)


def test_most_votes_decide_and_equal_ones_do_not():
    votes = np.array([[5, 3], [3, 5], [4, 4]], float)
    pairs = Preferences(("a",) * 3, ("b",) * 3, ("c",) * 3, votes, ("",) * 3, ((),) * 3, ("",) * 3)
    assert pairs.preferred.tolist() == [1, -1, 0]
    assert len(pairs) == 3


def test_rows_of_different_lengths_are_filled_up():
    np.testing.assert_array_equal(in_columns([[1], [], [2, 3]], ["a", "b", "c"]), [[1, NAN], [NAN, NAN], [2, 3]])
    assert in_columns([], []).shape == (0, 0)
    with pytest.raises(UserError, match=f"line 3: {MOST_RATERS + 1} ratings of one item"):
        in_columns([[1], [1.0] * (MOST_RATERS + 1)], ["line 2", "line 3"])
