"""Explanation of a score: which regions of a picture answered which words of a text, without tensors.

A model computes it (:meth:`PairScorer.explain <rungwise.models.PairScorer.explain>`); the report, the search
page and the terminal show it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rungwise.core.output import short_repr

_NAMES = (("upper left", "top", "upper right"), ("left", "middle", "right"), ("lower left", "bottom", "lower right"))
_HELD = 0.45
"""Share of the weight that a third of the picture must hold to be named; by chance it would hold a third."""


@dataclass(frozen=True)
class Explanation:
    """The score of one picture and one text, seen from the words.

    Where words attend to regions, the weights of a word are those of its attention. Where regions attend to words, they
    are read the other way: of all that the score owes to a word, the part that came by way of each region.

    Attributes:
        words: (L,) tokens, spelled as in the text; empty for those that frame it, such as its start.
        weights: (L, R) float32 weights, not negative; the row of a word adds up to 1.
        answers: (L,) float32 how well the picture answered each word: the cosine of the word and what it attended to;
            where regions attend, the weighted mean of their cosines.
        shares: (L,) float32 share of each word in the score; they add up to 1.
        boxes: (R, 4) float64 left, top, right and bottom of each region in the picture, as shares of its width and
            height. A region outside of the picture has no area. None where the places of regions are not known, as of
            rows of features.

    >>> found = Explanation(
    ...     words=("", "dog"),
    ...     weights=np.array([[0.5, 0.5], [0.1, 0.9]], np.float32),
    ...     answers=np.array([0.2, 0.8], np.float32),
    ...     shares=np.array([0.4, 0.6], np.float32),
    ...     boxes=np.array([[0, 0, 0.5, 1], [0.5, 0, 1, 1]]),
    ... )
    >>> found.decisive(), found.where(1)
    ([1], 'right')
    """

    words: tuple[str, ...]
    weights: NDArray[np.float32]
    answers: NDArray[np.float32]
    shares: NDArray[np.float32]
    boxes: NDArray[np.float64] | None

    __repr__ = short_repr

    def decisive(self, most: int | None = None) -> list[int]:
        """Positions of the words with the largest shares, at most ``most``, without tokens that frame the text."""
        order = np.lexsort((-self.answers, -self.shares)).tolist()
        return [place for place in order if self.words[place]][:most]

    def where(self, word: int) -> str:
        """Place of a word (by position) in the picture: the thirds, across and down, that hold most of its weight.

        Returns:
            Text such as ``"lower left"``; ``"all over"`` where the weight is spread; empty where regions have no boxes.
        """
        if self.boxes is None:
            return ""
        left, top, right, bottom = self.boxes.T
        weights = np.where((right > left) & (bottom > top), self.weights[word], 0.0)
        across, down = _third(left, right, weights), _third(top, bottom, weights)
        if across is None and down is None:
            return "all over"
        return _NAMES[1 if down is None else down][1 if across is None else across]


def _third(begin: NDArray[np.float64], end: NDArray[np.float64], weights: NDArray[np.float64]) -> int | None:
    """The third of one direction that holds most of the weight; None where the weight is spread."""
    edges = np.arange(4)[:, None] / 3
    overlap = np.clip(np.minimum(end, edges[1:]) - np.maximum(begin, edges[:-1]), 0, None)
    held = np.divide(overlap, end - begin, out=np.zeros_like(overlap), where=end > begin) @ weights
    return int(held.argmax()) if held.max() >= _HELD * held.sum() > 0 else None
