"""Cache of thumbnails, each made once for all who wait for it, and kept while there is room."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass
from threading import RLock

from starlette.requests import Request

from rungwise.serving.queues import WorkQueue, outcome


@dataclass
class _Flight:
    """A thumbnail that is being made, and the number of requests that wait for it."""

    work: Future[bytes]
    waiting: int = 0


class ThumbnailCache:
    """Bytes by key, made in a queue when they are first asked for.

    Args:
        queue: Queue in which they are made.
        room: Number of bytes to keep; those unused for longest are dropped first.
        seconds: Time for which a request may wait for its turn.
    """

    def __init__(self, queue: WorkQueue, room: int, seconds: float) -> None:
        self._queue = queue
        self._room = room
        self._seconds = seconds
        self._lock = RLock()
        self._kept: OrderedDict[Hashable, bytes] = OrderedDict()
        self._size = 0
        self._flights: dict[Hashable, _Flight] = {}

    def kept(self, key: Hashable) -> bytes | None:
        """Bytes that are kept under a key, or None."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    async def get(self, key: Hashable, make: Callable[[], bytes], request: Request, client: str) -> bytes:
        """Bytes under a key; made unless they are kept or being made for another request.

        Raises:
            BusyError: If the turn has not come in time.
            ClientDisconnect: If the client has left; the bytes are still made for others that wait.
            UserError: If ``make`` raises it.
        """
        with self._lock:
            if (at_hand := self.kept(key)) is not None:
                return at_hand
            flight = self._flights.get(key)
            if flight is None:
                work = self._queue.submit(make, client=client, patience=1.0)
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
