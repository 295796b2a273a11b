import asyncio
import threading
from concurrent.futures import Future

import pytest
from starlette.requests import ClientDisconnect, Request

from rungwise.serving.queues import BusyError, LateError, WorkQueue, outcome
from tests.serving.loops import run


def request_of(left: asyncio.Event) -> Request:
    """A request whose client leaves when it is told to."""

    async def receive() -> dict[str, object]:
        await left.wait()
        return {"type": "http.disconnect"}

    return Request({"type": "http", "headers": []}, receive)


def test_result_and_error_come_through() -> None:
    async def ask() -> None:
        queue, request = WorkQueue(threads=1), request_of(asyncio.Event())
        assert await outcome(queue.submit(lambda: 3, client="a"), request, 1e6) == 3
        with pytest.raises(ZeroDivisionError):
            await outcome(queue.submit(lambda: 1 / 0, client="a"), request, 1e6)

    asyncio.run(ask())


def test_a_client_that_leaves_frees_its_place() -> None:
    async def ask() -> None:
        left, work = asyncio.Event(), Future()
        asyncio.get_running_loop().call_later(29, left.set)
        with pytest.raises(ClientDisconnect):
            await outcome(work, request_of(left), 30)
        assert work.cancelled()

    run(ask())


def test_what_does_not_begin_in_time_is_dropped() -> None:
    async def ask() -> None:
        work = Future()
        with pytest.raises(BusyError):
            await outcome(work, request_of(asyncio.Event()), 30)
        assert work.cancelled()
        assert asyncio.get_running_loop().time() == pytest.approx(30)

    run(ask())


def test_what_has_begun_is_waited_for() -> None:
    async def ask() -> None:
        begun, go = threading.Event(), threading.Event()
        work = WorkQueue(threads=1).submit(lambda: (begun.set(), go.wait(), "done")[2], client="a")
        begun.wait()
        asyncio.get_running_loop().call_later(31, go.set)
        assert await outcome(work, request_of(asyncio.Event()), 30) == "done"

    run(ask())


def test_what_does_not_end_in_time_is_left_and_its_client_told() -> None:
    async def ask() -> None:
        begun, go = threading.Event(), threading.Event()
        work = WorkQueue(threads=1).submit(lambda: (begun.set(), go.wait())[1], client="a")
        begun.wait()
        with pytest.raises(LateError):
            await outcome(work, request_of(asyncio.Event()), 30, longest=45)
        assert asyncio.get_running_loop().time() == pytest.approx(45)
        go.set()
        assert work.result()

    run(ask())


def test_shutdown_passes_through_and_frees_the_place() -> None:
    async def ask() -> None:
        work = Future()
        task = asyncio.ensure_future(outcome(work, request_of(asyncio.Event()), 30))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert work.cancelled()

    run(ask())
