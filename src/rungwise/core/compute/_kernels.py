"""Compilation of inner loops with numba, which the extra ``rungwise[fast]`` brings.

The first call of a kernel on a machine compiles it, which takes a second or so; later processes load the result.
Kernels carry no annotations: numba infers the types from the arguments. Loading numba takes a while, so modules of
kernels are imported where a kernel is first called.

Without numba the same loops run as Python, which is slow, or a form of them in numpy does (:func:`kernel_or`). Numbers
are equal.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache, wraps
from typing import Any

import numpy as np

from rungwise.core._errors import RungwiseWarning

njit: Any = None
try:
    import numba

    njit = numba.njit
except ModuleNotFoundError as error:
    if error.name != "numba":
        raise


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function; it releases the interpreter's lock while it runs, so that threads run side by side."""
    return _compiled(function)


def kernel_or(plain: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile a function as :func:`kernel` does; without numba ``plain`` is called, which gives the same by numpy."""
    return lambda function: plain if njit is None else _compiled(function)


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    if njit is None:
        return _as_python(function)
    compiled: Callable[..., Any] = njit(cache=True, nogil=True)(function)
    return compiled


def _as_python(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def run(*arguments: Any) -> Any:
        _say_that_it_is_slow()
        with np.errstate(over="ignore"):  # bits that leave an integer at its upper end are meant to be lost
            return function(*arguments)

    return run


@cache
def _say_that_it_is_slow() -> None:
    line = "numba is not installed, so measures and degrees are counted slowly; pip install 'rungwise[fast]'"
    warnings.warn(line, RungwiseWarning, stacklevel=2)
