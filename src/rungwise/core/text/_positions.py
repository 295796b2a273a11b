"""Positions that represent a long list."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def evenly_spread(count: int, most: int) -> NDArray[np.int64]:
    """(min(count, most),) rising positions of a list, as far apart as can be, the first and the last among them.

    A single position is the first.

    >>> evenly_spread(10, 4)
    array([0, 3, 6, 9])
    """
    return np.linspace(0, count - 1, min(count, most)).round().astype(np.int64)
