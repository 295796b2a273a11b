"""Waiting for work on behalf of a request, for a limited time and only while its client is there."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request

T = TypeVar("T")


class BusyError(Exception):
    """Work could not begin in time."""


class LateError(Exception):
    """Work has begun and did not end in time; it may still do so."""


async def outcome(
    work: Future[T],
    request: Request,
    seconds: float,
    drop: Callable[[], bool] | None = None,
    *,
    longest: float = math.inf,
) -> T:
    """The result of work that was submitted to a queue.

    Args:
        work: Outcome to wait for.
        request: Request that waits; its body must have been read.
        seconds: Time for which the work may wait for its turn.
        drop: Called when nobody waits any more; returns whether the work had not begun. By default the outcome is
            cancelled.
        longest: Time for which the result is waited for, the wait for its turn included; for ever by default.

    Raises:
        BusyError: If the work has not begun in time.
        LateError: If it has begun and not ended in time.
        ClientDisconnect: If the client has left.
    """
    drop = drop or work.cancel
    done = asyncio.wrap_future(work)
    done.add_done_callback(_look_at)
    left = asyncio.ensure_future(_left(request))
    either: tuple[asyncio.Future[Any], ...] = (done, left)
    try:
        turn = min(seconds, longest)
        await asyncio.wait(either, timeout=turn, return_when=asyncio.FIRST_COMPLETED)
        if not done.done() and not left.done():
            if not work.running() and not work.done():
                raise BusyError
            further = None if longest == math.inf else longest - turn
            await asyncio.wait(either, timeout=further, return_when=asyncio.FIRST_COMPLETED)
        if done.done():
            return done.result()
        if left.done():
            raise ClientDisconnect
        raise LateError
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
