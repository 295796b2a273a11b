import gc
import os
import sys
import threading
import weakref
from collections.abc import Iterator
from concurrent.futures import wait
from contextlib import contextmanager
from typing import Any

import pytest

from rungwise.core import UserError
from rungwise.serving.queues import Memory, WorkQueue


@contextmanager
def held(**settings: Any) -> Iterator[WorkQueue]:
    """A queue whose only thread is busy within the block."""
    queue, go, begun = WorkQueue(threads=1, **settings), threading.Event(), threading.Event()
    queue.submit(lambda: (begun.set(), go.wait()), client="busy")
    begun.wait()
    try:
        yield queue
    finally:
        go.set()


def order_of(submissions: list[tuple[str, str, float]]) -> list[str]:
    """In which order a thread does what was submitted at one moment: name, client and patience of each."""
    done: list[str] = []
    with held(clock=lambda: 0.0) as queue:
        work = [
            queue.submit(lambda name=name: done.append(name), client=client, patience=patience)
            for name, client, patience in submissions
        ]
    wait(work)
    return done


def test_texts_go_before_pictures_that_came_first() -> None:
    assert order_of([("picture", "a", 60), ("text", "b", 0), ("text 2", "b", 0)]) == ["text", "text 2", "picture"]


def test_a_client_with_much_under_way_lets_others_pass() -> None:
    many = [(f"a{number}", "a", 60.0) for number in range(3)]
    assert order_of([*many, ("b", "b", 60.0)]) == ["a0", "b", "a1", "a2"]


def test_nobody_waits_for_ever() -> None:
    """A picture that has waited for as long as it was to is due before a text that comes then."""
    now, done = [0.0], []
    with held(clock=lambda: now[0]) as queue:
        work = [queue.submit(lambda: done.append("picture"), client="a", patience=60.0)]
        for now[0] in (59.0, 61.0):
            work.append(queue.submit(lambda at=now[0]: done.append(f"text at {at:g}"), client="b"))
    wait(work)
    assert done == ["text at 59", "picture", "text at 61"]


def test_errors_are_the_outcome_and_the_thread_goes_on() -> None:
    queue = WorkQueue(threads=1)
    with pytest.raises(ZeroDivisionError):
        queue.submit(lambda: 1 / 0, client="a").result()
    assert queue.submit(lambda: 2, client="a").result() == 2


def test_as_many_work_at_once_as_there_are_threads() -> None:
    queue, together = WorkQueue(threads=3), threading.Barrier(3)
    work = [queue.submit(lambda: together.wait(), client="a") for _ in range(6)]
    wait(work)


class Picture:
    """Stands for much memory."""

    def use(self) -> int:
        return 1

    def fail(self) -> int:
        raise ValueError


def test_what_is_cancelled_in_the_queue_is_given_back_at_once() -> None:
    picture = Picture()
    left = weakref.ref(picture)
    with held() as queue:
        work = queue.submit(picture.use, client="a")
        del picture
        assert left() is not None
        assert work.cancel()
        assert left() is None


@pytest.mark.parametrize("method", ["use", "fail"])
def test_what_is_done_is_given_back_without_the_collector(method: str) -> None:
    queue, picture = WorkQueue(threads=1), Picture()
    left = weakref.ref(picture)
    gc.disable()
    try:
        work = queue.submit(getattr(picture, method), client="a")
        del picture
        wait([work])
        queue.submit(lambda: None, client="a").result()  # the thread has left what it did before
        del work
        assert left() is None
    finally:
        gc.enable()


@pytest.mark.skipif(sys.platform != "linux", reason="threads have no priorities of their own there")
def test_a_yielding_queue_leaves_the_processor_to_others() -> None:
    def niceness() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    before = niceness()
    assert WorkQueue(threads=1, yielding=True).submit(niceness, client="a").result() == max(before, 10)
    assert WorkQueue(threads=1).submit(niceness, client="a").result() == niceness() == before


def test_memory_is_waited_for_and_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    memory, events, met = Memory(100), [], threading.Event()

    class Told(threading.Condition):
        def wait(self, timeout: float | None = None) -> bool:
            met.set()
            return super().wait(timeout)

    monkeypatch.setattr(memory, "_changed", Told())

    def take() -> None:
        with memory.taken(50):
            events.append("taken")
            met.set()

    with memory.taken(60):
        other = threading.Thread(target=take)
        other.start()
        met.wait()  # it waits, or did not have to
        events.append("given back")
    other.join()
    assert events == ["given back", "taken"]
    assert memory.left == 100


def test_more_than_all_memory_is_never_free() -> None:
    memory = Memory(100)
    with pytest.raises(ValueError, match="101"), memory.taken(101):
        pass
    with pytest.raises(ZeroDivisionError), memory.taken(100):
        raise ZeroDivisionError
    assert memory.left == 100


def test_a_server_that_can_start_no_thread_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def begin(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", begin)
    with pytest.raises(UserError, match="out of memory: the server can start no thread; allow more"):
        WorkQueue(threads=2)
