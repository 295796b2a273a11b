"""What a calibration is asked about one query, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rungwise.core.errors import UserError

Values = NDArray[np.float64]

RUNGS = ("exactly", "close", "loosely related")
"""Names for people of the rungs 1, 2 and 3: how well a hit fits."""

BEYOND = len(RUNGS) + 1
"""The rung of every hit after the end of relevance."""


@dataclass(frozen=True)
class Background:
    """The scores of a query with a fixed sample of all candidates: most of them are irrelevant to it.

    Attributes:
        scores: (sample,) in any order.
        total: How many candidates there are, sampled or not.

    Raises:
        UserError: If there are fewer candidates than scores, or a score is not finite.

    >>> Background(np.array([0.1, 0.3, 0.2]), total=8091).total
    8091
    """

    scores: NDArray[np.floating]
    total: int

    def __post_init__(self) -> None:
        if self.total < len(self.scores):
            raise UserError(f"background: {len(self.scores)} scores of {self.total} candidates; give the whole number")
        if not np.isfinite(self.scores).all():
            raise UserError("background: a score is not finite; the model or a vector of the index is damaged")


@dataclass(frozen=True)
class Known:
    """What is known of a query and its hits beside the scores; None is not known.

    Attributes:
        vector: (D,) the query's own, by the model's text side.
        unknown_share: Share of its words that the model does not know, 0..1.
        caption_scores: (hits,) likeness of the query with the best caption of each hit; NaN without a caption.

    >>> Known(unknown_share=0.5).vector is None
    True
    """

    vector: NDArray[np.floating] | None = None
    unknown_share: float | None = None
    caption_scores: NDArray[np.floating] | None = None


@dataclass(frozen=True)
class QueryJudgement:
    """What a calibration says of the best hits of one query.

    Attributes:
        degrees: (hits,) expected degrees of relevance, on the scale of the calibration.
        rungs: (hits,) 1, 2 or 3 as :data:`RUNGS` names them; :data:`BEYOND` after the end of relevance.
        cut: How many of the best hits to show; 0 for "nothing relevant".
        belief: That a candidate is relevant at all, 0..1.

    >>> QueryJudgement(np.array([0.9, 0.1]), np.array([1, 4]), cut=1, belief=0.95).cut
    1
    """

    degrees: Values
    rungs: NDArray[np.int64]
    cut: int
    belief: float
