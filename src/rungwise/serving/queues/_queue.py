"""Queue of costly work: few threads, and clients with the least work under way go first."""

from __future__ import annotations

import heapq
import itertools
import os
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Condition, Lock, get_native_id
from time import monotonic
from typing import Any, TypeVar

from rungwise.core import UserError
from rungwise.core.compute import OwnThread, thread_pool

T = TypeVar("T")

_NICENESS = 10


@dataclass(order=True)
class _Job:
    due: float
    number: int
    work: Callable[[], Any] = field(compare=False)
    outcome: Future[Any] = field(compare=False)


class WorkQueue:
    """Work that a few threads do in the order in which it is due.

    Work is due after ``patience`` seconds, and as much later again for each piece that its client has under way. So a
    client that asks for much does not delay others, and nobody waits for ever.

    Args:
        threads: Number of threads.
        yielding: Whether the threads leave the processor to other threads; only Linux can distinguish threads.
        clock: Function that gives seconds from any moment on.

    Raises:
        UserError: If the system starts no thread.

    >>> queue = WorkQueue(threads=1)
    >>> queue.submit(lambda: 6 * 7, client="192.0.2.7").result()
    42
    """

    def __init__(self, threads: int, *, yielding: bool = False, clock: Callable[[], float] = monotonic) -> None:
        self._threads = thread_pool(threads, name="rungwise-queue", initializer=_yield_to_others if yielding else None)
        if isinstance(self._threads, OwnThread):
            raise UserError("out of memory: the server can start no thread; allow more memory or processes (ulimit -u)")
        self._clock = clock
        self._lock = Lock()
        self._free = threads
        self._waiting: list[_Job] = []
        self._begun: deque[_Job] = deque()
        self._numbers = itertools.count()
        self._under_way: Counter[str] = Counter()

    @property
    def waiting(self) -> int:
        """Number of pieces of work that have not begun."""
        return len(self._waiting)

    def submit(self, work: Callable[[], T], *, client: str, patience: float = 0.0) -> Future[T]:
        """Queue a piece of work; one whose outcome is cancelled before its turn is dropped with everything it holds."""
        outcome: Future[T] = Future()
        with self._lock:
            number = next(self._numbers)
            due = self._clock() + patience * (1 + self._under_way[client])
            self._under_way[client] += 1
            heapq.heappush(self._waiting, _Job(due, number, work, outcome))
        # Not the job itself, which holds the outcome, and with it an error and all that its frames hold, in a circle.
        outcome.add_done_callback(lambda done: self._ended(number, client, done.cancelled()))
        self._start()
        return outcome

    def _start(self) -> None:
        """Give free threads to the jobs that are due first."""
        with self._lock:
            while self._free and self._waiting:
                job = heapq.heappop(self._waiting)
                if job.outcome.set_running_or_notify_cancel():
                    self._free -= 1
                    self._begun.append(job)
                    self._threads.submit(self._do)

    def _do(self) -> None:
        job = self._begun.popleft()
        work, outcome = job.work, job.outcome
        try:
            result = work()
        except BaseException as error:  # whoever waits for it is to have it, whatever it is
            outcome.set_exception(error)
        else:
            outcome.set_result(result)
        finally:
            # An error knows this frame and those above it: together they would keep what the work holds, such as a
            # picture, alive in a circle.
            del job, work, outcome
            with self._lock:
                self._free += 1
            self._start()

    def _ended(self, number: int, client: str, dropped: bool) -> None:
        with self._lock:
            self._under_way[client] -= 1
            if not self._under_way[client]:
                del self._under_way[client]
            if dropped:
                self._waiting = [job for job in self._waiting if job.number != number]
                heapq.heapify(self._waiting)


def _yield_to_others() -> None:
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, get_native_id(), _NICENESS)


class Memory:
    """Budget of ``total`` bytes that work in several threads may take together.

    >>> memory = Memory(100)
    >>> with memory.taken(70):
    ...     memory.left
    30
    """

    def __init__(self, total: int) -> None:
        self._total = total
        self._left = total
        self._changed = Condition()

    @property
    def left(self) -> int:
        """Number of bytes that are free."""
        return self._left

    @contextmanager
    def taken(self, size: int) -> Iterator[None]:
        """Context in which so many bytes are taken; waits until they are free.

        Raises:
            ValueError: If they are more than the total.
        """
        if size > self._total:
            raise ValueError(f"{size} bytes of {self._total}")
        with self._changed:
            self._changed.wait_for(lambda: self._left >= size)
            self._left -= size
        try:
            yield
        finally:
            with self._changed:
                self._left += size
                self._changed.notify_all()
