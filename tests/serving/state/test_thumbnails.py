import asyncio
import threading
from collections.abc import Callable

import pytest
from starlette.requests import ClientDisconnect

from rungwise.core import UserError
from rungwise.serving.queues import WorkQueue
from rungwise.serving.state._thumbnails import ThumbnailCache
from tests.serving.queues.test_waiting import request_of


class Maker:
    """Makes bytes when it is let, and counts how often."""

    def __init__(self, size: int = 10) -> None:
        self.size, self.made = size, 0
        self.begun, self.go = threading.Event(), threading.Event()

    def __call__(self) -> bytes:
        self.made += 1
        self.begun.set()
        self.go.wait()
        return bytes(self.size)


def get(shelf: ThumbnailCache, key: str, make: Callable[[], bytes], left: asyncio.Event | None = None) -> asyncio.Task:
    return asyncio.ensure_future(shelf.get(key, make, request_of(left or asyncio.Event()), "a"))


def test_twenty_who_ask_at_once_have_it_made_once() -> None:
    async def ask() -> None:
        shelf, make = ThumbnailCache(WorkQueue(threads=2), room=100, seconds=1e6), Maker()
        asked = [get(shelf, "a", make) for _ in range(20)]
        await asyncio.sleep(0)
        make.go.set()
        assert {len(one) for one in await asyncio.gather(*asked)} == {10}
        assert await get(shelf, "a", make) == bytes(10)
        assert make.made == 1

    asyncio.run(ask())


def test_it_is_made_for_the_others_when_the_first_leaves() -> None:
    async def ask() -> None:
        shelf, make, left = ThumbnailCache(WorkQueue(threads=1), room=100, seconds=1e6), Maker(), asyncio.Event()
        first, second = get(shelf, "a", make, left), get(shelf, "a", make)
        await asyncio.sleep(0)
        left.set()
        with pytest.raises(ClientDisconnect):
            await first
        make.go.set()
        assert await second == bytes(10)

    asyncio.run(ask())


def test_nothing_is_made_for_nobody() -> None:
    async def ask() -> None:
        busy, make, left = Maker(), Maker(), asyncio.Event()
        shelf = ThumbnailCache(WorkQueue(threads=1), room=100, seconds=1e6)
        before = get(shelf, "before", busy)
        waiting = [get(shelf, "a", make, left) for _ in range(3)]
        await asyncio.sleep(0)
        left.set()
        for one in waiting:
            with pytest.raises(ClientDisconnect):
                await one
        busy.go.set()
        make.go.set()
        await before
        assert make.made == 0
        assert await get(shelf, "a", make) == bytes(10)  # and it can be asked for again

    asyncio.run(ask())


def test_room_is_kept_by_dropping_what_is_unused_for_longest() -> None:
    async def ask() -> None:
        shelf = ThumbnailCache(WorkQueue(threads=1), room=30, seconds=1e6)
        for key in ("a", "b", "c", "a", "d"):
            await get(shelf, key, lambda: bytes(10))
        assert [key for key in "abcd" if shelf.kept(key) is not None] == ["a", "c", "d"]
        await get(shelf, "large", lambda: bytes(31))
        assert [key for key in ("a", "c", "d", "large") if shelf.kept(key) is not None] == []

    asyncio.run(ask())


def test_a_failure_is_told_to_all_and_not_kept() -> None:
    def fail() -> bytes:
        raise UserError("damaged")

    async def ask() -> None:
        shelf = ThumbnailCache(WorkQueue(threads=1), room=30, seconds=1e6)
        for one in [get(shelf, "a", fail) for _ in range(3)]:
            with pytest.raises(UserError, match="damaged"):
                await one
        assert await get(shelf, "a", lambda: b"mended") == b"mended"

    asyncio.run(ask())
