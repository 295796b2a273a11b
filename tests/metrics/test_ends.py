import numpy as np
import pytest

from rungwise.core import UserError
from rungwise.metrics import Ends, JudgedQueries, judged_by


class Half:
    """A method that shows half of all candidates; a method needs no base class."""

    def judge(self, scores, direction, queries):
        return JudgedQueries(np.full(len(queries), scores.shape[1] // 2), scores.max(axis=1))


def test_any_class_that_judges_is_a_method():
    method: Ends = Half()
    judged = method.judge(np.array([[0.2, 0.7]]), "t2i", np.array([0]))
    assert judged.cuts.tolist() == [1]
    assert judged.beliefs.tolist() == [0.7]


@pytest.mark.parametrize(
    ("judged", "words"),
    [
        (JudgedQueries(np.array([1, 1]), np.zeros(1)), "cuts of shape (2,)"),
        (JudgedQueries(np.array([1.0]), np.zeros(1)), "one whole number for each query"),
        (JudgedQueries(np.array([3]), np.zeros(1)), "shows 3 of 2 candidates"),
        (JudgedQueries(np.array([-1]), np.zeros(1)), "shows -1 of 2 candidates"),
        (JudgedQueries(np.array([1]), np.array([np.nan])), "one finite belief for each query"),
        (JudgedQueries(np.array([1]), np.zeros(1), np.zeros((1, 3))), "one finite degree for each candidate"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused(judged, words):
    class Wrong:
        def judge(self, scores, direction, queries):
            return judged

    with pytest.raises(UserError) as caught:
        judged_by(Wrong(), np.zeros((1, 2)), "t2i", np.array([0]))
    assert words in str(caught.value)
    assert "Wrong" in str(caught.value)
