import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.integrations.engines._hits import asking, hits


def test_hits_are_ordered_and_an_id_that_comes_twice_is_kept_once():
    ids, scores = hits("an engine", ["a", 7, "a", "b"], [0.5, 0.25, 0.75, 0.5])
    assert ids == ("a", "b", "7")
    np.testing.assert_array_equal(scores, [0.75, 0.5, 0.25])
    assert hits("an engine", [], [])[0] == ()


def test_an_error_of_a_client_becomes_one_short_line_and_ours_stays():
    with pytest.raises(UserError) as refused, asking("Qdrant"):
        raise RuntimeError("first line\nsecond \x1b[31m line " + "long " * 100)
    assert str(refused.value).startswith("Qdrant: cannot be asked (first line second ")
    assert len(str(refused.value)) < 300
    assert "\x1b" not in str(refused.value)
    with pytest.raises(UserError, match="^ours$"), asking("Qdrant"):
        raise UserError("ours")
