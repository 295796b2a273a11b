"""A standard for queries by picture: how near the best picture of an index comes to pictures of nothing.

Two things bound what counts as "like a given picture". Patterns without a thing in them (:func:`unrelated_pictures`)
say what cosine the nearest picture reaches for a picture that has nothing to do with the index. Pictures of the index
itself say how near their neighbours stand; where a pattern comes as near as those (a red disc among drawings of discs),
the neighbours decide.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rungwise.calibration import (
    BEYOND,
    SHARE_OF_BEST,
    UNJUDGED_BOUNDARIES,
    UNJUDGED_RUNGS,
    Background,
    Known,
    QueryJudgement,
)
from rungwise.core import UserError
from rungwise.index.stores import Store, Vectors

_SHOWN = 0.9
"""Share of the patterns whose nearest picture must be farther than a picture that is shown."""
_ALONE = 0.1
"""Largest share of the index's own pictures of which it may be said that nothing else is like them."""
_OWN = 128
"""Number of the index's own pictures whose neighbours are looked up."""


@dataclass(frozen=True)
class PictureStandard:
    """Judges the hits of a query by picture, by their cosines.

    A hit is shown if its cosine is ``least`` or more, and its height over the query's centre two thirds of the best
    hit's, as for texts. Its degree is (cosine - least) / (1 - least): 0 for what patterns reach, 1 for the picture
    itself.

    Attributes:
        least: Cosine that the nearest pictures of nine in ten patterns do not reach; or that at least nine in ten
            pictures of the index have with their nearest neighbour, if that is less.
        deviation: Standard deviation of the cosines of the patterns with their nearest pictures.
    """

    least: float
    deviation: float

    source: ClassVar[str] = "no judgements: by how much nearer hits are than pictures of nothing come"
    names: ClassVar[tuple[str, str, str]] = UNJUDGED_RUNGS
    relevant_from: ClassVar[float] = UNJUDGED_BOUNDARIES[1]

    @classmethod
    def of(cls, store: Store, patterns: Vectors, own: Vectors) -> PictureStandard:
        """Measure it in a store.

        Args:
            store: Pictures of the index.
            patterns: (patterns, D) vectors of pictures of nothing.
            own: (sample, D) vectors of pictures of the store, of which the first ones are taken.

        Raises:
            UserError: If all patterns are as far from the index, so that the model tells no pictures apart.
        """
        found = store.search(patterns, 1, metric="cosine").scores
        reached = np.array([float(scores[0]) for scores in found])
        # The first is the picture itself.
        near = store.search(own[:_OWN], 2, metric="cosine").scores
        neighbours = [float(scores[-1]) for scores in near]
        if not reached.std():
            raise UserError("patterns: the model gives the same vector to all of them; it tells no pictures apart")
        least = min(float(np.quantile(reached, _SHOWN)), float(np.quantile(neighbours, _ALONE)))
        return cls(least, float(reached.std()))

    def judge_hits(
        self, scores: NDArray[np.floating], background: Background, known: Known | None = None
    ) -> QueryJudgement:
        """Judge the best hits of one query, whose (hits,) cosines fall; ``known`` makes no difference."""
        from scipy.special import ndtr, ndtri

        cosines = np.asarray(scores, np.float64)
        heights = cosines - np.median(background.scores)
        cut = int(np.count_nonzero((cosines >= self.least) & (heights >= SHARE_OF_BEST * heights[0])))
        degrees = np.clip((cosines - self.least) / max(1 - self.least, 1e-6), 0.0, 1.0)
        first, second = UNJUDGED_BOUNDARIES
        rungs = np.where(degrees >= first, 1, np.where(degrees >= second, 2, 3))
        rungs[cut:] = BEYOND
        belief = float(ndtr(ndtri(_SHOWN) + (cosines[0] - self.least) / self.deviation))
        return QueryJudgement(degrees, rungs, cut, belief)
