"""One vector for a query of several parts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError
from rungwise.similarity import unit_rows

_NOTHING = 1e-5
"""Length of a sum of unit vectors, per weight, in which nothing but rounding is left."""


def combined(vectors: Sequence[NDArray[np.float32]], weights: Sequence[float]) -> NDArray[np.float32]:
    """(1, D) weighted sum of (D,) or (1, D) vectors, each brought to length 1 before; the sum has length 1 too.

    One vector with a positive weight stays as it is. For a similarity that is an inner product of unit vectors, the sum
    ranks as the weighted sum of the similarities would. For others, such as that of order embeddings, it is a vector
    between those that are added. Where no vector has a negative entry, the sum has none: those entries become 0.

    Raises:
        UserError: If the parts cancel each other out.

    >>> combined([np.array([2.0, 0]), np.array([0, 3.0])], [3, 4])
    array([[0.6, 0.8]], dtype=float32)
    """
    rows = np.concatenate([np.atleast_2d(np.asarray(one, np.float32)) for one in vectors])
    if len(rows) == 1 and weights[0] > 0:
        return rows
    units = unit_rows(rows)
    total = np.asarray(weights, np.float32) @ units
    if units.min(initial=0) >= 0 and max(weights) > 0:
        total = np.maximum(total, 0)
    if not np.linalg.norm(total) > _NOTHING * np.abs(weights).sum():
        raise UserError("the parts of the query cancel each other out; change a weight, or leave one out")
    return unit_rows(total[None])
