"""The contract of methods that say where relevance ends, and checks of their judgements."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError
from rungwise.metrics._rankings import Direction, JudgedQueries, Scores


class Ends(Protocol):
    """A method that says where relevance ends, such as :class:`rungwise.calibration.Calibration`."""

    def judge(self, scores: Scores, direction: Direction, queries: NDArray[np.int64]) -> JudgedQueries:
        """Judge a block of queries by all of their scores.

        Args:
            scores: (queries, candidates) similarities.
            direction: Direction of the queries.
            queries: (queries,) positions among all queries, for a method that knows more of them than their scores.
        """
        ...


def name_of_ends(ends: Ends) -> str:
    """Name of a method in results: its text if its class defines one, else the name of the class."""
    own = type(ends)
    says_nothing = own.__str__ is object.__str__ and own.__repr__ is object.__repr__
    return own.__name__ if says_nothing else " ".join(str(ends).split())


def judged_by(ends: Ends, scores: Scores, direction: Direction, queries: NDArray[np.int64]) -> JudgedQueries:
    """Judgement of a block of queries by a method, checked against the block.

    Raises:
        UserError: If the method returns other shapes, cuts beyond the candidates, or numbers that are not finite.

    >>> class Nothing:
    ...     def judge(self, scores, direction, queries):
    ...         return JudgedQueries(np.zeros(len(queries), dtype=np.int64), np.zeros(len(queries)))
    >>> judged_by(Nothing(), np.zeros((2, 3)), "t2i", np.arange(2)).cuts
    array([0, 0])
    """
    judged = ends.judge(scores, direction, queries)
    name, candidates = type(ends).__name__, scores.shape[1]
    cuts, beliefs, degrees = np.asarray(judged.cuts), np.asarray(judged.beliefs, dtype=np.float64), judged.degrees
    if cuts.shape != (len(scores),) or cuts.dtype.kind not in "iu":
        raise UserError(f"ends: {name} answers cuts of shape {cuts.shape}; give one whole number for each query")
    if (wrong := cuts[(cuts < 0) | (cuts > candidates)]).size:
        raise UserError(f"ends: {name} shows {wrong[0]} of {candidates} candidates; cuts count hits from the best")
    if beliefs.shape != (len(scores),) or not np.isfinite(beliefs).all():
        raise UserError(f"ends: {name} does not give one finite belief for each query; correct the method")
    if degrees is not None and (degrees.shape != scores.shape or not np.isfinite(degrees).all()):
        raise UserError(f"ends: {name} does not give one finite degree for each candidate; correct the method")
    shown = judged.shown
    if shown is not None and (shown.shape != scores.shape or (np.count_nonzero(shown, axis=1) != cuts).any()):
        raise UserError(f"ends: {name} does not show as many candidates as its cuts say; correct the method")
    return JudgedQueries(cuts.astype(np.int64), beliefs, degrees, shown)


__all__ = ["Ends", "JudgedQueries", "judged_by", "name_of_ends"]
