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
    """Compile a function; it releases the interpreter's lock while it runs, so that threads run side by side."""
    compiled: Callable[..., Any] = njit(cache=True, nogil=True)(function)
    return compiled


def sums_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a loop that adds up: as :func:`kernel`, but terms are added in any order, several at once.

    NaN and infinity stay what they are.
    """
    compiled: Callable[..., Any] = njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})(function)
    return compiled
