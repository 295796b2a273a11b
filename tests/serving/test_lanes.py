import gc
import os
import sys
import threading
import weakref
from concurrent.futures import wait

import pytest

from rungwise.serving.lanes import Lane, Memory

SECONDS = 30  # against hangs alone


class Held:
    """A lane whose only thread is busy until it is let go."""

    def __init__(self) -> None:
        self.lane = Lane(threads=1)
        self.go, begun = threading.Event(), threading.Event()
        self.busy = self.lane.submit(lambda: (begun.set(), self.go.wait(SECONDS)), client="busy")
        assert begun.wait(SECONDS)


def order_of(submissions: list[tuple[str, str, float]]) -> list[str]:
    """In which order a thread does what was submitted: name, client and patience of each."""
    held, done = Held(), []
    work = [
        held.lane.submit(lambda name=name: done.append(name), client=client, patience=patience)
        for name, client, patience in submissions
    ]
    held.go.set()
    assert not wait(work, SECONDS).not_done
    return done


def test_texts_go_before_pictures_that_came_first() -> None:
    assert order_of([("picture", "a", 60), ("text", "b", 0), ("text 2", "b", 0)]) == ["text", "text 2", "picture"]


def test_a_client_with_much_under_way_lets_others_pass() -> None:
    many = [(f"a{number}", "a", 60.0) for number in range(3)]
    assert order_of([*many, ("b", "b", 60.0)]) == ["a0", "b", "a1", "a2"]


def test_errors_are_the_outcome_and_the_thread_goes_on() -> None:
    lane = Lane(threads=1)
    with pytest.raises(ZeroDivisionError):
        lane.submit(lambda: 1 / 0, client="a").result(SECONDS)
    assert lane.submit(lambda: 2, client="a").result(SECONDS) == 2


def test_as_many_work_at_once_as_there_are_threads() -> None:
    lane, together = Lane(threads=3), threading.Barrier(3)
    work = [lane.submit(lambda: together.wait(SECONDS), client="a") for _ in range(6)]
    assert not wait(work, SECONDS).not_done


class Picture:
    """Stands for much memory."""

    def use(self) -> int:
        return 1

    def fail(self) -> int:
        raise ValueError


def test_what_is_cancelled_in_the_queue_is_given_back_at_once() -> None:
    held, picture = Held(), Picture()
    left = weakref.ref(picture)
    work = held.lane.submit(picture.use, client="a")
    del picture
    assert left() is not None
    assert work.cancel()
    assert left() is None
    held.go.set()


@pytest.mark.parametrize("method", ["use", "fail"])
def test_what_is_done_is_given_back_without_the_collector(method: str) -> None:
    lane, picture = Lane(threads=1), Picture()
    left = weakref.ref(picture)
    gc.disable()
    try:
        work = lane.submit(getattr(picture, method), client="a")
        del picture
        wait([work], SECONDS)
        lane.submit(lambda: None, client="a").result(SECONDS)  # the thread has left what it did before
        del work
        assert left() is None
    finally:
        gc.enable()


@pytest.mark.skipif(sys.platform != "linux", reason="threads have no priorities of their own there")
def test_a_yielding_lane_leaves_the_processor_to_others() -> None:
    def niceness() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    before = niceness()
    assert Lane(threads=1, yielding=True).submit(niceness, client="a").result(SECONDS) == max(before, 10)
    assert Lane(threads=1).submit(niceness, client="a").result(SECONDS) == niceness() == before


def test_memory_is_waited_for_and_given_back() -> None:
    memory, inside = Memory(100), threading.Event()
    with memory.taken(60):
        other = threading.Thread(target=lambda: _take(memory, 50, inside))
        other.start()
        assert not inside.wait(0.05)
    assert inside.wait(SECONDS)
    other.join(SECONDS)
    assert memory.left == 100


def test_more_than_all_memory_is_never_free() -> None:
    memory = Memory(100)
    with pytest.raises(ValueError, match="101"), memory.taken(101):
        pass
    with pytest.raises(ZeroDivisionError), memory.taken(100):
        raise ZeroDivisionError
    assert memory.left == 100


def _take(memory: Memory, size: int, inside: threading.Event) -> None:
    with memory.taken(size):
        inside.set()
