"""Small copies of pictures, each made once for all who wait for it, and kept as long as there is room."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass
from threading import RLock

from starlette.requests import Request

from rungwise.serving.queues.queue import WorkQueue
from rungwise.serving.queues.waiting import outcome


@dataclass
class _Flight:
    """One that is being made, and for how many."""

    work: Future[bytes]
    waiting: int = 0


class ThumbnailCache:
    """Bytes by key, made in a lane when they are first asked for.

    Args:
        lane: Where they are made.
        room: Bytes that are kept; those unused for longest are dropped first.
        seconds: For which one may wait for its turn.

    >>> shelf = ThumbnailCache(WorkQueue(threads=1), room=100, seconds=1)
    >>> shelf.kept("a") is None
    True
    """

    def __init__(self, lane: WorkQueue, room: int, seconds: float) -> None:
        self._lane = lane
        self._room = room
        self._seconds = seconds
        self._lock = RLock()
        self._kept: OrderedDict[Hashable, bytes] = OrderedDict()
        self._size = 0
        self._flights: dict[Hashable, _Flight] = {}

    def kept(self, key: Hashable) -> bytes | None:
        """What is at hand under a key."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    async def get(self, key: Hashable, make: Callable[[], bytes], request: Request, client: str) -> bytes:
        """What is under a key; made unless it is at hand or being made for somebody else.

        Raises:
            BusyError: If its turn has not come in time.
            ClientDisconnect: If the client has left. It is then made for the others, if there are any.
            UserError: As ``make`` raises.
        """
        with self._lock:
            if (at_hand := self.kept(key)) is not None:
                return at_hand
            flight = self._flights.get(key)
            if flight is None:
                work = self._lane.submit(make, client=client, patience=1.0)
                flight = self._flights[key] = _Flight(work)
                work.add_done_callback(lambda done: self._land(key, done))
            flight.waiting += 1
        return await outcome(flight.work, request, self._seconds, lambda: self._leave(flight))

    def _leave(self, flight: _Flight) -> bool:
        with self._lock:
            flight.waiting -= 1
            return not flight.waiting and flight.work.cancel()

    def _land(self, key: Hashable, done: Future[bytes]) -> None:
        with self._lock:
            self._flights.pop(key, None)
            if done.cancelled() or done.exception() is not None:
                return
            made = done.result()
            self._size += len(made)
            self._kept[key] = made
            while self._size > self._room:
                _, dropped = self._kept.popitem(last=False)
                self._size -= len(dropped)
