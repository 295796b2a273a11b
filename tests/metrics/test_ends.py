import numpy as np

from rungwise.metrics.ends import Ends, Judged


class Half:
    """A method that shows half of all candidates; a method needs no base class."""

    def judge(self, scores, direction, queries):
        return Judged(np.full(len(queries), scores.shape[1] // 2), scores.max(axis=1))


def test_any_class_that_judges_is_a_method():
    method: Ends = Half()
    judged = method.judge(np.array([[0.2, 0.7]]), "t2i", np.array([0]))
    assert judged.cuts.tolist() == [1]
    assert judged.beliefs.tolist() == [0.7]
