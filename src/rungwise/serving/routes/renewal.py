"""Routes that answer from the version of an index that has just taken the place of another.

Files of an index that was replaced may be gone before the new one is read, and a request that began before then fails.
It is answered once more, from the new version, as soon as that is read. Where there is none, and the files of the old
one are gone, the server is at fault and not whoever asked: the status is 503, as that of ``/ready`` is then.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import HTTPException, Request, Response
from fastapi.routing import APIRoute

from rungwise.core import UnavailableError, UserError
from rungwise.core.output import line_of
from rungwise.serving.state import Current, ServedIndex

__all__ = ["renewed_routes"]

_LOOKS = 2
"""A look that is under way may have begun before the index was replaced."""

_log = logging.getLogger(__name__)


def renewed_routes(current: Current, seconds: float) -> type[APIRoute]:
    """Class of routes whose requests are answered once more where a version took the place of the one that failed.

    A new version is waited for at most ``seconds``.
    """

    class RenewedRoute(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            answer = super().get_route_handler()

            async def answered(request: Request) -> Response:
                before = current.now()
                try:
                    return await answer(request)
                except UnavailableError:
                    raise
                except UserError as error:
                    if not await _renewed(current, before, seconds):
                        if (problem := current.problem) is None or not await asyncio.to_thread(_is_gone, before):
                            raise
                        _log.warning("%s", line_of(error))
                        message = f"the store of the index cannot be read; {problem}"
                        raise HTTPException(503, message, {"Retry-After": "5"}) from error
                return await answer(request)

            return answered

    return RenewedRoute


def _is_gone(served: ServedIndex) -> bool:
    """Whether the files of a version that another was to replace can be read no more."""
    try:
        served.index.picture_store.get(served.newest[:1])
    except UserError:
        return True
    return False


async def _renewed(current: Current, before: object, seconds: float) -> bool:
    """Whether another version than the one before is served now, or is after a look at the place of the index."""
    for _ in range(_LOOKS):
        if current.now() is before:
            await asyncio.wait([asyncio.wrap_future(current.look())], timeout=seconds)
    return current.now() is not before
