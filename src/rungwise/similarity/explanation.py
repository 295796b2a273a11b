"""Which regions of a picture answered which words of a text, as a value without tensors.

What computes it is a model's own; see :meth:`PairScorer.explain <rungwise.models.contracts.PairScorer.explain>`. What
shows it are the report, the search page and the terminal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_NAMES = (("upper left", "top", "upper right"), ("left", "middle", "right"), ("lower left", "bottom", "lower right"))
_HELD = 0.45
"""What a third of a picture holds at least of what is in one place; by chance it would be a third."""


@dataclass(frozen=True)
class Explanation:
    """How the score of one picture and one text came about, seen from the words.

    Where words attend to regions, the weights of a word are those of its attention. Where regions attend to words, they
    are read the other way: of all that the score owes to a word, how much came by way of each region.

    Attributes:
        words: (L,) tokens as they stand in the text; empty for those that frame it, such as its beginning.
        weights: (L, R) float32, not negative; the row of a word adds up to 1.
        answers: (L,) float32 how well the picture answered each word, as the cosine of the word and what it attended
            to; where regions attend, the mean of their cosines, weighted.
        shares: (L,) float32 how much each word counts in the score; they add up to 1.
        boxes: (R, 4) float64 left, top, right and bottom of each region in the picture, as shares of its width and
            height. A region that lies outside of the picture has no area. None where nobody knows where regions lie,
            as of rows of features.

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

    def decisive(self, most: int | None = None) -> list[int]:
        """Places of the words that count most in the score, those first; tokens that frame the text are left out.

        Args:
            most: How many; all unless given.
        """
        order = np.lexsort((-self.answers, -self.shares)).tolist()
        return [place for place in order if self.words[place]][:most]

    def where(self, word: int) -> str:
        """Where in the picture a word was found, in words: the third across and the third down that hold most of it.

        Args:
            word: Its place.

        Returns:
            Such as ``"lower left"``; ``"all over"`` where its weight is spread; empty where regions have no boxes.
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
    """The third of one direction that holds most; None where the weight is spread.

    >>> _third(np.array([0.0, 0.5]), np.array([0.5, 1.0]), np.array([0.1, 0.9]))
    2
    """
    edges = np.arange(4)[:, None] / 3
    overlap = np.clip(np.minimum(end, edges[1:]) - np.maximum(begin, edges[:-1]), 0, None)
    held = np.divide(overlap, end - begin, out=np.zeros_like(overlap), where=end > begin) @ weights
    return int(held.argmax()) if held.max() >= _HELD * held.sum() > 0 else None
