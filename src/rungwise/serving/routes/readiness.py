"""Route of readiness: whether the store of the index answers, so that searches would be answered now.

Whether the server answers at all is another question. A store on another server may be away for a while; then this
server lives, but visitors are better sent elsewhere.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Future
from time import monotonic

from fastapi import APIRouter, HTTPException, Response

from rungwise.core import UnavailableError
from rungwise.core.compute import thread_pool
from rungwise.core.network import answered_within
from rungwise.core.output import line_of
from rungwise.serving.schemas import json_answer, refusals, responses
from rungwise.serving.state import Current, ServedIndex

__all__ = ["routes"]

_SHARE = 0.8
"""Share of the time for which the store is asked."""
_RETRY = {"Retry-After": "5"}

_log = logging.getLogger(__name__)


def routes(current: Current, seconds: float) -> APIRouter:
    """Operation that says whether searches would be answered; the store may take ``seconds`` to answer."""
    router, store = APIRouter(), _Store(current, seconds)

    @router.get("/ready", response_model=responses.Ready, responses=refusals(), tags=["server"])
    async def ready() -> Response:
        """That searches would be answered now: the store of the index answers; status 503 otherwise."""
        asked = store.asked()
        try:
            # A store that hangs is asked no second time meanwhile, so its answer is waited for without being cancelled.
            pictures = await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(asked)), seconds)
        except TimeoutError:
            raise HTTPException(503, store.why_late, _RETRY) from None
        except Exception as error:  # whatever a store says when it is away
            store.say(line_of(error))
            raise HTTPException(503, _reason(error, store, current), _RETRY) from error
        return json_answer(responses.Ready("ready", pictures, current.problem))

    return router


def _reason(error: Exception, store: _Store, current: Current) -> str:
    if not isinstance(error, UnavailableError):
        gone = "the store of the index cannot be read; the server's log says why"
        return gone if current.problem is None else f"{gone}; {current.problem}"
    if error.refused:
        return "the store of the index takes no connections; the server's log says why"
    return store.why_late


class _Store:
    """The store of the served index, asked by a thread of its own: a store that hangs blocks nothing else.

    Args:
        current: The version that is served.
        seconds: Time within which the store is to answer.
        clock: Function that gives seconds from any moment on.
    """

    def __init__(self, current: Current, seconds: float, clock: Callable[[], float] = monotonic) -> None:
        self._current, self._seconds, self._clock = current, seconds, clock
        self._thread = thread_pool(1, name="rungwise-ready")
        self._asked: Future[int] | None = None
        self._counted: float | None = None
        self._said = ""

    def asked(self) -> Future[int]:
        """Number of pictures that the store reports; a question under way is not asked twice."""
        if self._asked is None or self._asked.done():
            self._asked = self._thread.submit(self._ask, self._current.now())
        return self._asked

    def say(self, line: str) -> None:
        """Write to the log why the store is not ready, unless that is known from the last question."""
        if line != self._said:
            _log.warning("not ready: %s", line)
        self._said = line

    @property
    def why_late(self) -> str:
        """Why the store is not ready, where it did not answer in time."""
        late = f"the store of the index did not answer within {_SHARE * self._seconds:g} s"
        if self._counted is None:
            return f"{late}; it hangs or is slow"
        return f"{late}; it is slow: it took {self._counted:.1f} s to count the pictures"

    def _ask(self, served: ServedIndex) -> int:
        start, self._counted = self._clock(), None
        # A little less, so that a store that takes no connections says so in time.
        with answered_within(_SHARE * self._seconds):
            store = served.index.picture_store
            pictures = store.count()
            self._counted = self._clock() - start
            store.get(served.newest[:1])  # some stores know their number by heart when their files are gone
        self._said = ""
        return pictures
