"""Values that go into and come out of the judgement of one query."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError
from rungwise.core.output import short_repr

Values = NDArray[np.float64]

Names = tuple[str, str, str]

RUNGS: Names = ("exactly", "close", "loosely related")
"""Names of the rungs 1, 2 and 3, which say how well a hit fits, by a calibration that was learnt from judgements."""

UNJUDGED_RUNGS: Names = ("best", "good", "further")
"""Names of the rungs 1, 2 and 3 where nothing was judged: how clearly a hit stands out, not whether it is right."""

BEYOND = len(RUNGS) + 1
"""Rung of every hit after the end of relevance."""


@dataclass(frozen=True)
class Background:
    """Scores of a query with a fixed sample of all candidates, most of which are irrelevant to it.

    Attributes:
        scores: (sample,) scores in any order.
        total: Number of candidates, sampled or not.

    Raises:
        UserError: If there are fewer candidates than scores, or a score is not finite.
    """

    scores: NDArray[np.floating]
    total: int

    __repr__ = short_repr

    def __post_init__(self) -> None:
        if self.total < len(self.scores):
            raise UserError(f"background: {len(self.scores)} scores of {self.total} candidates; give the whole number")
        if not np.isfinite(self.scores).all():
            raise UserError("background: a score is not finite; the model or a vector of the index is damaged")


@dataclass(frozen=True)
class Known:
    """What is known of a query and its hits besides the scores; None stands for unknown.

    Attributes:
        vector: (D,) vector of the query from the model's text side.
        unknown_share: Share of the query's words that the model does not know, 0..1.
        words: Number of words of the query.
        bearers: Number of texts of the index, or of a sample of them, that hold all words of the query.
        texts: Number of texts that were looked at for it.
        caption_scores: (hits,) similarity of the query with the best caption of each hit; NaN without a caption.
        stated: (hits,) share of the query's words, weighted by rarity, that captions and columns of each hit hold;
            NaN for a hit without texts.
        counts: (hits,) number of captions of each hit.
        nearest: Number of first hits that are the nearest candidates without a gap; those after them were found by
            their words. All are if None.
    """

    vector: NDArray[np.floating] | None = None
    unknown_share: float | None = None
    words: int | None = None
    bearers: int | None = None
    texts: int = 0
    caption_scores: NDArray[np.floating] | None = None
    stated: NDArray[np.floating] | None = None
    counts: NDArray[np.int64] | None = None
    nearest: int | None = None

    __repr__ = short_repr

    def of_hits(self, hits: NDArray[np.int64]) -> Known:
        """What is known of the query and of some of its candidates, by their (hits,) positions."""
        scores, stated, counts = self.caption_scores, self.stated, self.counts
        return replace(
            self,
            caption_scores=None if scores is None else scores[hits],
            stated=None if stated is None else stated[hits],
            counts=None if counts is None else counts[hits],
        )

    @property
    def of_query(self) -> Known:
        """What is known of the query alone, whatever texts the candidates have."""
        return replace(self, bearers=None, caption_scores=None, stated=None, counts=None)


@dataclass(frozen=True)
class QueryJudgement:
    """Judgement of the best hits of one query.

    Attributes:
        degrees: (hits,) expected degrees of relevance, on the scale of the calibration.
        rungs: (hits,) 1, 2 or 3 as :attr:`Calibration.names` names them; :data:`BEYOND` after the end of relevance.
        cut: Number of best hits to show; 0 for "nothing relevant".
        belief: Belief that any candidate is relevant, 0..1.
    """

    degrees: Values
    rungs: NDArray[np.int64]
    cut: int
    belief: float

    __repr__ = short_repr
