"""A standard for indexes without judgements: the heights that queries reach which fit nothing.

The scores of one query alone hardly tell whether its best hits are right: they rise smoothly out of the bulk, whether
the query means something in the index or not. What tells is how high they rise, compared with queries that fit nothing.
The texts here are about things that pictures seldom show. Their scores with the same candidates give the height of each
one's best hit over its centre (the median). A hit of a query stands out as far as it is higher than those best hits,
which are taken to be normally distributed.

With more candidates, the best is higher. Heights of single hits are taken to be normal in the tail, so the best of n is
near the quantile 1 - 1 / (2 n): it grows by their spread times the difference of these quantiles.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rungwise.calibration._judgement import Values
from rungwise.core import UserError

_FEWEST = 10
"""Smallest number of texts that make a standard."""

_SHOWN = 0.9
"""Share of unrelated queries whose best hit must be lower than a hit that is shown."""

_SHARE_OF_BEST = 2 / 3
"""Share of the best hit's height that a hit must have to be shown."""

_QUERIES = 10
"""Number of unrelated queries that a degree compares with."""

_TAIL = (0.01, 0.001)
"""Shares of all heights between which the spread of the tail is measured."""


@dataclass(frozen=True)
class Standard:
    """Heights of the best hits of unrelated queries over the query's centre, in units of the scores.

    Attributes:
        best: Mean height of these best hits.
        deviation: Standard deviation of these heights.
        spread: Spread of the heights of single hits in the upper tail.
        total: Number of candidates that the best hits were taken from.

    >>> scores = np.random.default_rng(0).normal(0.1, 0.05, (50, 2000))
    >>> standard = Standard.of(scores)
    >>> standard.standing_out(np.array([0.1, 0.3]), total=2000).round(2)
    array([0., 1.])
    """

    best: float
    deviation: float
    spread: float
    total: int

    @classmethod
    def of(cls, scores: ArrayLike) -> Standard:
        """Measure the standard by (texts, candidates) scores of unrelated texts with all candidates or a sample.

        Raises:
            UserError: If there are fewer than 10 texts or two candidates, or scores are constant or not finite.
        """
        values = checked_unrelated(scores)
        heights = values - np.median(values, axis=1, keepdims=True)
        best = heights.max(axis=1)
        if not best.any():
            raise UserError("unrelated: all scores of each text are the same; the model tells no candidates apart")
        nearer, farther = np.quantile(heights, [1 - _TAIL[0], 1 - _TAIL[1]])
        spread = (farther - nearer) / (_quantile(_TAIL[1]) - _quantile(_TAIL[0]))
        return cls(
            float(best.mean()), max(float(best.std()), 1e-3 * float(best.mean())), float(spread), values.shape[1]
        )

    def standing_out(self, heights: Values, total: int) -> Values:
        """Share of unrelated queries whose best of ``total`` candidates is lower than each of (hits,) heights."""
        from scipy.special import ndtr

        grown = self.spread * (_quantile(0.5 / total) - _quantile(0.5 / self.total))
        return np.asarray(ndtr((heights - self.best - grown) / self.deviation))

    def degrees(self, heights: Values, highest: float, total: int) -> Values:
        """Degrees in 0..1: how near hits come to the best one, and how surely they exceed ten unrelated queries.

        ``heights`` are (hits,) scores over the query's centre, ``highest`` is that of its best hit, and ``total`` the
        number of candidates.
        """
        if highest <= 0:
            return np.zeros(len(heights))
        return np.asarray(self.standing_out(heights, total) ** _QUERIES * np.clip(heights / highest, 0.0, 1.0))

    def cut(self, heights: Values, total: int) -> int:
        """Number of hits to show, from (hits,) falling heights and the number of candidates."""
        high = (self.standing_out(heights, total) >= _SHOWN) & (heights >= _SHARE_OF_BEST * heights[0])
        return int(np.count_nonzero(high))


def checked_unrelated(scores: ArrayLike) -> Values:
    """(texts, candidates) scores of texts that fit nothing, if a standard can be made of them.

    Raises:
        UserError: If there are fewer than 10 texts or two candidates, or a score is not finite.
    """
    values = np.asarray(scores, np.float64)
    if values.ndim != 2 or len(values) < _FEWEST or values.shape[1] < 2:
        raise UserError(f"unrelated: shape {values.shape}; give scores of {_FEWEST} or more texts with two or more")
    if not np.isfinite(values).all():
        raise UserError("unrelated: a score is not finite; the model, or a vector of the index, is damaged")
    return values


def _quantile(share: float) -> float:
    """Quantile of the standard normal distribution beyond which this share lies."""
    from scipy.special import ndtri

    return float(-ndtri(share))


UNRELATED = (
    "The court of appeal adjourned the hearing until the end of the quarter.",
    "How do I undo the last commit without losing my changes?",
    "Quantum field theory predicts the anomalous magnetic moment.",
    "Interest rates were left unchanged by the central bank.",
    "I disagree with the second premise of your argument.",
    "The warranty does not cover consequential damages.",
    "Inflation expectations have become less firmly anchored.",
    "Please find attached the minutes of last week's meeting.",
    "Why does the compiler reject this template specialisation?",
    "The treaty was ratified by eleven member states.",
    "A continuous function on a compact set is bounded.",
    "My subscription was renewed although I had cancelled it.",
    "The senator denied any knowledge of the payments.",
    "Enzymes lower the activation energy of a reaction.",
    "What is the difference between a deposit and an advance payment?",
    "Shares of the insurer fell after the profit warning.",
    "The theorem follows by induction on the degree.",
    "She wondered whether honesty was always a virtue.",
    "The ministry postponed the reform of the pension system.",
    "Statistical significance does not imply practical importance.",
    "The patch fixes a memory leak in the scheduler.",
    "Unemployment among graduates declined for the third year.",
    "You should consult a tax adviser before you sign.",
    "The eigenvalues of a symmetric matrix are real.",
    "Negotiators failed to agree on the wording of the clause.",
    "The password must contain at least twelve characters.",
    "Ownership of the copyright passes to the publisher.",
    "The vaccine was approved under an emergency procedure.",
    "Is it correct to use the subjunctive in this sentence?",
    "The merger is subject to the consent of the regulator.",
    "Causality cannot be inferred from a correlation.",
    "The parliament rejected the motion by a narrow majority.",
    "The gross domestic product grew by two percent.",
    "An algorithm of quadratic complexity is too slow here.",
    "The defendant pleaded not guilty to all charges.",
    "Which of these verbs are irregular in the past tense?",
    "The half-life of the isotope is about nine days.",
    "The rumour was neither confirmed nor denied.",
    "His theory of justice rests on a hypothetical contract.",
    "The update will be rolled out over the coming weeks.",
    "A delay in payment entitles the supplier to interest.",
    "The hypothesis was rejected at the five percent level.",
    "The spokesman declined to comment on the allegations.",
    "Recursion needs a base case, or it never ends.",
    "The premium depends on the insured sum.",
    "Ceasefire talks resumed after months of deadlock.",
    "The word has its origin in late Latin.",
    "The budget deficit is expected to widen next year.",
)
"""Texts about things that pictures seldom show."""
