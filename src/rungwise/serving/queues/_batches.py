"""Batches of work that is cheaper done together.

Nobody waits for others to come: while nothing is being done, a request is done at once and alone. Requests that arrive
meanwhile are done together afterwards, so batches grow with the number of clients.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Lock
from typing import Generic, TypeVar

from rungwise.serving.queues._queue import WorkQueue

Asked = TypeVar("Asked")
Given = TypeVar("Given")


@dataclass(frozen=True)
class _Waiting(Generic[Asked, Given]):
    asked: Asked
    size: int
    client: str
    outcome: Future[Given]


class Batches(Generic[Asked, Given]):
    """Requests that wait for their turn in a queue and are done together.

    Where more wait than one call takes, every client has its first request done before any has its second, small ones
    go before large ones, and the one that has waited longest is always included. So a small one waits for few large
    ones.

    Args:
        queue: Queue for the work; batches are due before all work with patience.
        do: Function that does several requests; it gives for each, in order, a result or an error. Each is handed on as
            soon as it is given.
        most: Largest number of requests in a batch; 1 does them one at a time.
        at_once: Number of batches that the queue does at the same time. A batch leaves as many to the others.
        size: Function that gives the size of a request, in any unit.
        room: Largest sum of sizes in a batch, besides the request that has waited longest.
        observe: Callback with the number of requests of every batch.

    >>> doubled = Batches(WorkQueue(threads=1), lambda numbers: [2 * number for number in numbers])
    >>> doubled.submit(21, client="192.0.2.7").result()
    42
    """

    def __init__(
        self,
        queue: WorkQueue,
        do: Callable[[Sequence[Asked]], Iterable[Given | Exception]],
        *,
        most: int = 64,
        at_once: int = 1,
        size: Callable[[Asked], int] = lambda _: 0,
        room: int = 0,
        observe: Callable[[int], None] | None = None,
    ) -> None:
        self._queue = queue
        self._do = do
        self._most = most
        self._at_once = at_once
        self._size = size
        self._room = room
        self._observe = observe
        self._lock = Lock()
        self._waiting: list[_Waiting[Asked, Given]] = []
        self._called = False

    @property
    def waiting(self) -> int:
        """Number of requests that wait for their turn."""
        return len(self._waiting)

    def submit(self, asked: Asked, *, client: str) -> Future[Given]:
        """Queue a request; one whose outcome is cancelled before its turn is dropped."""
        outcome: Future[Given] = Future()
        with self._lock:
            self._waiting.append(_Waiting(asked, self._size(asked), client, outcome))
            call, self._called = not self._called, True
        if call:
            self._queue.submit(self._turn, client="")
        return outcome

    def _turn(self) -> None:
        batch = self._next()
        if not batch:
            return
        if self._observe is not None:
            self._observe(len(batch))
        left = iter(batch)
        try:
            for outcome, one in zip(self._do([one.asked for one in batch]), left, strict=False):
                if isinstance(outcome, Exception):
                    one.outcome.set_exception(outcome)
                else:
                    one.outcome.set_result(outcome)
            error: Exception = RuntimeError("a batch gave too few results")
        except Exception as raised:  # whoever waits is to have it, whatever it is
            error = raised
        for one in left:
            one.outcome.set_exception(error)

    def _next(self) -> list[_Waiting[Asked, Given]]:
        with self._lock:
            waiting, of_client = self._waiting, Counter[str]()
            most = min(self._most, -(-len(waiting) // self._at_once))
            rank, chosen, room = [], {0}, self._room
            for place, one in enumerate(waiting):
                rank.append((of_client[one.client], one.size, place))
                of_client[one.client] += 1
            for _, size, place in sorted(rank):
                if place and len(chosen) < most and size <= room:
                    chosen.add(place)
                    room -= size
            self._waiting = [one for place, one in enumerate(waiting) if place not in chosen]
            waiting = [one for place, one in enumerate(waiting) if place in chosen]
            call = self._called = bool(self._waiting)
        if call:
            self._queue.submit(self._turn, client="")
        return [one for one in waiting if one.outcome.set_running_or_notify_cancel()]
