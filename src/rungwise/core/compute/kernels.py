"""Compilation of inner loops with numba.

The first call of a kernel on a machine compiles it, which takes a second or so; later processes load the result.
Kernels carry no annotations: numba infers the types from the arguments. Loading numba takes a while, so modules of
kernels are imported where a kernel is first called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function; it releases the interpreter's lock while it runs, so that threads run side by side.

    >>> import numpy as np
    >>> from rungwise.core.compute.topk_kernels import take_in_rows
    >>> taken = np.empty((1, 2))
    >>> take_in_rows(np.array([[0.5, 0.25]]), np.array([[1, 1]]), taken, 0, 1)
    >>> taken
    array([[0.25, 0.25]])
    """
    compiled: Callable[..., Any] = njit(cache=True, nogil=True)(function)
    return compiled


def sums_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a loop that adds up: as :func:`kernel`, but terms are added in any order, several at once.

    NaN and infinity stay what they are.

    >>> import numpy as np
    >>> from rungwise.core.compute.product_kernels import squares_of_rows
    >>> squares_of_rows(np.array([[3.0, 4.0]], np.float32), found := np.empty(1, np.float32), 0, 1)
    >>> found
    array([25.], dtype=float32)
    """
    compiled: Callable[..., Any] = njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})(function)
    return compiled
