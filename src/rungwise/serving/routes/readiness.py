"""Route of readiness: whether the store of the index answers, so that searches would be answered now.

Whether the server answers at all is another question. A store on another server may be away for a while; then this
server lives, but visitors are better sent elsewhere.
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import Future

from fastapi import APIRouter, HTTPException, Response

from rungwise.core.compute import thread_pool
from rungwise.core.output import printable
from rungwise.serving.schemas import json_answer, refusals, responses
from rungwise.serving.state import Current

__all__ = ["routes"]

_SECONDS = 5.0
_RETRY = {"Retry-After": "5"}

_log = logging.getLogger(__name__)


def routes(current: Current, seconds: float = _SECONDS) -> APIRouter:
    """Operation that says whether searches would be answered; the store may take ``seconds`` to answer."""
    router, store = APIRouter(), _Store(current)

    @router.get("/ready", response_model=responses.Ready, responses=refusals(), tags=["server"])
    async def ready() -> Response:
        """That searches would be answered now: the store of the index answers; status 503 otherwise."""
        counting = store.counting()
        try:
            # A store that hangs is asked no second time meanwhile, so its answer is waited for without being cancelled.
            pictures = await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(counting)), seconds)
        except TimeoutError:
            raise HTTPException(503, f"the store of the index did not answer within {seconds:g} s", _RETRY) from None
        except Exception as error:  # whatever a store says when it is away
            _log.warning("not ready: %s", printable(" ".join(str(error).split()) or type(error).__name__))
            raise HTTPException(
                503, "the store of the index does not answer; the server's log says why", _RETRY
            ) from error
        return json_answer(responses.Ready("ready", pictures))

    return router


class _Store:
    """The store of the served index, asked by a thread of its own: a store that hangs blocks nothing else."""

    def __init__(self, current: Current) -> None:
        self._current = current
        self._thread = thread_pool(1, name="rungwise-ready")
        self._counting: Future[int] | None = None

    def counting(self) -> Future[int]:
        """Number of pictures that the store reports; a question under way is not asked twice."""
        if self._counting is None or self._counting.done():
            self._counting = self._thread.submit(self._current.now().index.picture_store.count)
        return self._counting
