import asyncio
import threading

import pytest

from rungwise.serving.queues import repeated


def test_work_is_repeated_while_the_block_runs_and_not_after() -> None:
    done: list[bool] = []

    async def block() -> int:
        async with repeated(lambda: done.append(threading.current_thread() is threading.main_thread()), 0.0):
            while len(done) < 3:
                await asyncio.sleep(0)
        return len(done)

    assert asyncio.run(block()) == len(done)
    assert not any(done), "the server's own thread did the work"


def test_an_error_of_the_work_is_seen_at_the_end() -> None:
    tried = threading.Event()

    def broken() -> None:
        tried.set()
        raise ValueError("no")

    async def block() -> None:
        async with repeated(broken, 0.0):
            while not tried.is_set():
                await asyncio.sleep(0)

    with pytest.raises(ValueError, match="no"):
        asyncio.run(block())


def test_a_block_that_ends_waits_for_no_pause() -> None:
    done = asyncio.Event()

    async def block() -> None:
        loop = asyncio.get_running_loop()
        async with repeated(lambda: loop.call_soon_threadsafe(done.set), 1e9):
            await done.wait()

    asyncio.run(block())
