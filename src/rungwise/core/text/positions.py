"""Positions that stand for the whole of a long list."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def evenly_spread(count: int, most: int) -> NDArray[np.int64]:
    """Positions of a list as far apart as can be, the first and the last among them.

    Args:
        count: Length of the list.
        most: How many positions at most; of one, it is the first.

    Returns:
        (min(count, most),) positions, each once, rising.

    >>> evenly_spread(10, 4)
    array([0, 3, 6, 9])
    >>> evenly_spread(3, 100)
    array([0, 1, 2])
    """
    return np.linspace(0, count - 1, min(count, most)).round().astype(np.int64)
