"""Deadline by which work must have its answers from other machines, however often it asks for them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic

_deadline: ContextVar[float] = ContextVar("deadline", default=math.inf)


@contextmanager
def answered_within(seconds: float) -> Iterator[None]:
    """Context in which this thread waits for other machines for at most so many seconds in all.

    Whoever asks another machine looks at :func:`seconds_left`; a deadline within another only makes it earlier.
    """
    before = _deadline.set(min(_deadline.get(), monotonic() + seconds))
    try:
        yield
    finally:
        _deadline.reset(before)


def seconds_left() -> float:
    """Seconds until the deadline of this thread's work, 0 after it; infinite where there is none.

    >>> seconds_left()
    inf
    >>> with answered_within(60):
    ...     0 < seconds_left() <= 60
    True
    """
    return max(0.0, _deadline.get() - monotonic())
