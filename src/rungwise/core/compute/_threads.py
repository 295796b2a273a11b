"""Work shared among the cores of the machine."""

from __future__ import annotations

import _thread
import os
import sys
import threading
from collections.abc import Callable, Iterator, MutableMapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

_SMALL = 1 << 18
"""Number of entries below which handing work to threads costs more than it saves."""

_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS")

SORTING = 8
"""Ratio of the time to sort an entry to the time to compare it, roughly."""


class _Within(threading.local):
    """Whether this thread is running a part of :func:`in_threads`."""

    parts = False


_within = _Within()


def in_threads(work: Callable[[int, int], object], count: int, entries: int, threads: int | None = None) -> None:
    """Call ``work(low, high)`` for parts of ``range(count)`` that together make it up, on every core.

    Args:
        work: Releases the interpreter's lock and writes where no other part does. Where it calls this function in
            turn, that call stays on its thread.
        count: Length of the range.
        entries: Number of values that are read in all, times :data:`SORTING` where they are sorted; few are not worth a
            thread.
        threads: Highest number of threads; None takes one for each core.
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
    """Keep :func:`in_threads` on the calling thread within the block: other cores have work of their own.

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
def _pool(process: int, threads: int) -> Executor:
    """A pool that is kept, since starting threads takes long; one for each process, since a fork has no threads."""
    return thread_pool(threads, name=f"rungwise-{process}")


def thread_pool(threads: int, *, name: str = "rungwise", initializer: Callable[[], object] | None = None) -> Executor:
    """A pool of started threads, fewer where the system starts fewer; without any, the caller does the work.

    A thread takes memory for its stack, and a user may have a limited number of them.

    Args:
        threads: Highest number of threads.
        name: Beginning of each thread's name.
        initializer: Called by each thread before anything else.

    >>> with thread_pool(2) as pool:
    ...     list(pool.map(abs, [-1, -2]))
    [1, 2]
    """
    wanted = max(1, threads)
    while wanted:
        pool = ThreadPoolExecutor(wanted, thread_name_prefix=name, initializer=initializer)
        if (begun := _begun(pool, wanted)) == wanted:
            return pool
        pool.shutdown(cancel_futures=True)
        wanted = begun
    return OwnThread()


def _begun(pool: ThreadPoolExecutor, threads: int) -> int:
    """Start the threads of a pool; return how many started."""
    go = threading.Event()
    waiting: list[Future[bool]] = []
    with suppress(RuntimeError, MemoryError):
        # While one waits, the next one needs a thread of its own.
        waiting.extend(pool.submit(go.wait) for _ in range(threads))
    go.set()
    for one in waiting:
        one.result()  # each has been initialised
    return len(waiting)


class OwnThread(Executor):
    """An executor without threads, for where none can start: the caller does the work at once.

    >>> OwnThread().submit(abs, -1).result()
    1
    """

    def submit(self, work: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """A future that is done already."""
        outcome: Future[Any] = Future()
        try:
            outcome.set_result(work(*args, **kwargs))
        except BaseException as error:  # whoever waits for it is to have it, whatever it is
            outcome.set_exception(error)
        return outcome


_ONE_EACH = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "RAYON_NUM_THREADS",
     "TOKIO_WORKER_THREADS", "LANCE_CPU_THREADS", "LANCE_IO_THREADS", "ARROW_IO_THREADS"), "1",
) | {"TOKENIZERS_PARALLELISM": "false"}  # fmt: skip
"""Environment variables that limit libraries to one thread."""
_LATE = 2.0
"""Seconds after which a thread that has not run counts as one that cannot."""
_BESIDES = 8
"""Number of threads that a command may start besides those of the libraries."""


def settle_for_fewer(settings: MutableMapping[str, str] = os.environ) -> bool:
    """Limit libraries to one thread each where the system does not start two for each core; called before they load.

    Some libraries print, or end the process, where a thread does not start. Variables that are set stay as they are.

    Returns:
        Whether libraries were limited.
    """
    wanted = 2 * cores() + _BESIDES
    if startable(wanted) == wanted:
        return False
    for name, value in _ONE_EACH.items():
        settings.setdefault(name, value)
    return True


def startable(threads: int) -> int:
    """Number of threads that the system starts now, at most ``threads``; they end at once.

    To be asked before a library is told to start as many: some wait for ever for those that do not start.

    >>> startable(2)
    2
    """
    # Not threading.Thread: it waits for ever for a thread that the system starts, and that then finds no memory to run.
    go, all_have_run, begun = _thread.allocate_lock(), _thread.allocate_lock(), 0
    ended: list[None] = []

    def run() -> None:
        with go:
            ended.append(None)
            if len(ended) == begun:
                all_have_run.release()

    go.acquire()
    all_have_run.acquire()
    try:
        for _ in range(threads):
            _thread.start_new_thread(run, ())
            begun += 1
    except (RuntimeError, MemoryError):
        pass
    finally:
        go.release()
    all_have_run.acquire(timeout=_LATE if begun else 0)
    return len(ended)


def shared_environment(threads: int) -> dict[str, str]:
    """Environment for another process of ours that shares the cores: at most so many threads, and the same modules.

    A variable that asks for fewer threads already stays as it is.
    """
    found = dict(os.environ)
    for name in _THREADS:
        asked = found.get(name, "")
        found[name] = str(min(threads, int(asked)) if asked.isdigit() and int(asked) else threads)
    found["PYTHONPATH"] = os.pathsep.join(one for one in sys.path if one)
    return found


def cores() -> int:
    """Number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
