"""What a question's scores are worth: pure functions of the scores of its candidates. Ties never help."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray


def hit(scores: ArrayLike, right: Sequence[int] | NDArray[np.integer]) -> float:
    """100 where a right candidate scores strictly higher than every wrong one, else 0.

    Winoground counts so (Thrush et al. 2022, Eq. 1 and 2), and so does SugarCrepe's program: a tie is wrong. A
    program that takes the first of the best candidates counts a tie as right where the right one stands first, as in
    MMEB's files.

    Args:
        scores: (candidates,) scores; NaN is lower than any number.
        right: Positions of the right candidates.

    >>> hit([0.3, 0.2], [0]), hit([0.3, 0.3], [0])
    (100.0, 0.0)
    """
    own, is_right = _told(scores, right)
    return 100.0 * bool(own[is_right].max(initial=-np.inf) > own[~is_right].max(initial=-np.inf))


def average_precision(scores: ArrayLike, right: Sequence[int] | NDArray[np.integer], k: int) -> float:
    """AP@K in percent: precisions at the right ones among the first K, divided by min(K, number of right ones).

    The mean over queries is CIRCO's mAP@K (Baldrati et al. 2023). Of equal scores, wrong candidates come first.

    Args:
        scores: (candidates,) scores; NaN is lower than any number.
        right: Positions of the right candidates.
        k: Number of places that are looked at.

    >>> average_precision([0.9, 0.8, 0.7], [0, 2], 2), average_precision([0.9, 0.8, 0.7], [0, 2], 3)
    (50.0, 83.33333333333333)
    """
    own, is_right = _told(scores, right)
    found = is_right[np.lexsort((is_right, -own))[:k]]
    precisions = np.cumsum(found)[found] / (np.flatnonzero(found) + 1)
    return float(100 * precisions.sum() / min(k, int(is_right.sum())))


def target_recall(scores: ArrayLike, target: int, k: int) -> float:
    """100 where one candidate, the target, is among the first K, else 0. Of equal scores, others come first.

    >>> target_recall([0.9, 0.8, 0.7], 1, 1), target_recall([0.9, 0.8, 0.7], 1, 2)
    (0.0, 100.0)
    """
    own = _told(scores, [target])[0]
    return 100.0 * bool((own >= own[target]).sum() - 1 < k)


def _told(
    scores: ArrayLike, right: Sequence[int] | NDArray[np.integer]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    own = np.asarray(scores, dtype=np.float64)
    own = np.where(np.isnan(own), -np.inf, own)
    is_right = np.zeros(len(own), dtype=np.bool_)
    is_right[np.asarray(right, dtype=np.int64)] = True
    return own, is_right
