"""Work shared out over the cores of the machine."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache

_SMALL = 1 << 18
"""Entries below which handing work to threads costs more than it saves."""

SORTING = 8
"""About how many times as long an entry takes that is sorted rather than looked at."""


class _Within(threading.local):
    """Whether this thread works on a part just now."""

    parts = False


_within = _Within()


def in_threads(work: Callable[[int, int], object], count: int, entries: int, threads: int | None = None) -> None:
    """Call ``work(low, high)`` for parts of ``range(count)`` that together make it up, on every core.

    Args:
        work: Releases the interpreter's lock and writes where no other part does. Where it calls this function in
            turn, that call stays on its thread.
        count: Length of the range.
        entries: Numbers that are read in all, times :data:`SORTING` where they are sorted; few are not worth a thread.
        threads: At most so many; None takes one for each core.

    >>> seen = []
    >>> in_threads(lambda low, high: seen.append((low, high)), 10, entries=100)
    >>> seen
    [(0, 10)]
    """
    threads = min(threads or cores(), count) if entries >= _SMALL and not _within.parts else 1
    if threads <= 1:
        work(0, count)
        return
    parts = min(count, 4 * threads)
    edges = [count * part // parts for part in range(parts + 1)]
    left = iter(range(parts))

    def take() -> None:
        _within.parts = True
        try:
            for part in left:
                work(edges[part], edges[part + 1])
        finally:
            _within.parts = False

    # The caller works too: waking a thread may take as long as a part, and then nobody has waited for it.
    helpers = [_pool(os.getpid(), threads - 1).submit(take) for _ in range(threads - 1)]
    try:
        take()
    finally:
        for helper in helpers:
            if not helper.cancel():
                helper.result()


@contextmanager
def on_this_thread() -> Iterator[None]:
    """Within it, :func:`in_threads` stays on the thread that calls it: other cores have work of their own.

    >>> with on_this_thread():
    ...     in_threads(lambda low, high: print(low, high), 10, entries=10**9)
    0 10
    """
    before, _within.parts = _within.parts, True
    try:
        yield
    finally:
        _within.parts = before


@cache
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    """Kept, since starting threads takes as long as many a block; a forked process has none of its parent's threads."""
    return ThreadPoolExecutor(threads, thread_name_prefix=f"rungwise-{process}")


def cores() -> int:
    """Cores that this process may use.

    >>> cores() >= 1
    True
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
