"""Waiting for work on behalf of a request, for a limited time and only while its client is there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request

T = TypeVar("T")


class BusyError(Exception):
    """Work could not begin in time."""


async def outcome(work: Future[T], request: Request, seconds: float, drop: Callable[[], bool] | None = None) -> T:
    """The result of work that was submitted to a queue.

    Args:
        work: Outcome to wait for.
        request: Request that waits; its body must have been read.
        seconds: Time for which the work may wait for its turn. Once begun, it is waited for to its end.
        drop: Called when nobody waits any more; returns whether the work had not begun. By default the outcome is
            cancelled.

    Raises:
        BusyError: If the work has not begun in time.
        ClientDisconnect: If the client has left.
    """
    drop = drop or work.cancel
    done = asyncio.wrap_future(work)
    done.add_done_callback(_look_at)
    left = asyncio.ensure_future(_left(request))
    either: tuple[asyncio.Future[Any], ...] = (done, left)
    try:
        await asyncio.wait(either, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if not done.done() and not left.done():
            if not work.running() and not work.done():
                raise BusyError
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if done.done():
            return done.result()
        raise ClientDisconnect
    finally:
        left.cancel()
        drop()


def _look_at(done: asyncio.Future[T]) -> None:
    """Read the error of work for which nobody waits any more, of which asyncio would complain."""
    if not done.cancelled():
        done.exception()


async def _left(request: Request) -> None:
    """Return when the client has left."""
    while (await request.receive())["type"] != "http.disconnect":
        continue
