"""Work that is done again and again beside a server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress


@asynccontextmanager
async def repeated(work: Callable[[], object], seconds: float) -> AsyncIterator[None]:
    """Call a function in a thread at once, and again so many seconds after each time, while the block runs.

    Where the system starts no thread, that time is passed over. What the function raises is raised at the end.

    >>> done = []
    >>> async def block() -> None:
    ...     async with repeated(lambda: done.append(1), 0.0):
    ...         while len(done) < 3:
    ...             await asyncio.sleep(0)
    >>> asyncio.run(block())
    """
    ended = asyncio.Event()

    async def again_and_again() -> None:
        while not ended.is_set():
            with suppress(RuntimeError):
                await asyncio.to_thread(work)
            with suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), seconds)

    task = asyncio.create_task(again_and_again())
    try:
        yield
    finally:
        ended.set()
        await task
