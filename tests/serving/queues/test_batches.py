import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait

import pytest

from rungwise.serving.queues import Batches, WorkQueue


class Held:
    """Batches whose queue is busy until it is let go."""

    def __init__(self, most: int = 64, room: int = 1000, at_once: int = 1) -> None:
        self.done: list[list[str]] = []
        self.sizes: list[int] = []
        self.go, begun = threading.Event(), threading.Event()
        queue = WorkQueue(threads=1)
        queue.submit(lambda: (begun.set(), self.go.wait()), client="busy")
        begun.wait()
        self.batches = Batches(
            queue, self._do, most=most, at_once=at_once, size=len, room=room, observe=self.sizes.append
        )

    def _do(self, asked: Sequence[str]) -> list[str | Exception]:
        self.done.append(list(asked))
        return [ZeroDivisionError(one) if one == "bad" else one.upper() for one in asked]


Hold = Callable[..., Held]


@pytest.fixture
def hold() -> Iterator[Hold]:
    """Makes such batches, and lets them all go at the end."""
    made: list[Held] = []
    yield lambda **settings: made.append(Held(**settings)) or made[-1]
    for held in made:
        held.go.set()


def test_what_waits_is_done_together(hold: Hold) -> None:
    held = hold()
    work = [held.batches.submit(text, client="a") for text in ("one", "two", "three")]
    assert held.batches.waiting == 3
    held.go.set()
    assert [one.result() for one in work] == ["ONE", "TWO", "THREE"]
    assert held.done == [["one", "two", "three"]]
    assert held.sizes == [3]
    assert held.batches.waiting == 0


def test_nobody_waits_for_others_to_come() -> None:
    alone = Batches[int, int](WorkQueue(threads=1), lambda numbers: [2 * number for number in numbers])
    assert [alone.submit(number, client="a").result() for number in range(3)] == [0, 2, 4]


def test_one_that_fails_fails_alone(hold: Hold) -> None:
    held = hold()
    good, bad = held.batches.submit("good", client="a"), held.batches.submit("bad", client="a")
    held.go.set()
    assert good.result() == "GOOD"
    with pytest.raises(ZeroDivisionError):
        bad.result()


def test_when_all_fail_together_each_is_told() -> None:
    def fail(asked: Sequence[str]) -> list[str]:
        raise MemoryError

    work = [Batches(WorkQueue(threads=1), fail).submit(text, client="a") for text in ("one", "two")]
    for one in work:
        with pytest.raises(MemoryError):
            one.result()


def test_where_too_many_wait_every_client_has_its_first_before_any_has_its_second(hold: Hold) -> None:
    held = hold(most=2)
    work = [held.batches.submit(f"a{number}", client="a") for number in range(3)]
    work.append(held.batches.submit("b0", client="b"))
    held.go.set()
    wait(work)
    assert held.done == [["a0", "b0"], ["a1", "a2"]]


def test_large_ones_do_not_go_together(hold: Hold) -> None:
    held = hold(room=5)
    work = [held.batches.submit(text, client="a") for text in ("large", "LARGE", "much too large")]
    work += [held.batches.submit(text, client=text) for text in ("b", "c")]
    held.go.set()
    wait(work)
    assert held.done == [["large", "b", "c"], ["LARGE"], ["much too large"]]


def test_what_was_cancelled_is_not_done(hold: Hold) -> None:
    held = hold()
    first, dropped = held.batches.submit("first", client="a"), held.batches.submit("dropped", client="a")
    assert dropped.cancel()
    held.go.set()
    assert first.result() == "FIRST"
    assert held.done == [["first"]]


def test_a_batch_of_which_all_were_cancelled_is_not_done(hold: Hold) -> None:
    held = hold()
    dropped = held.batches.submit("dropped", client="a")
    assert dropped.cancel()
    held.go.set()
    assert held.batches.submit("next", client="a").result() == "NEXT"
    assert held.done == [["next"]]


def test_batches_at_the_same_time_leave_as_many_to_each_other(hold: Hold) -> None:
    held = hold(at_once=2)
    work = [held.batches.submit(str(number), client=str(number)) for number in range(5)]
    held.go.set()
    wait(work)
    assert held.done == [["0", "1", "2"], ["3"], ["4"]]


def waiting_together(do: Callable[[Sequence[str]], Iterator[str]]) -> list[Future[str]]:
    """Outcomes of two requests, which are done in one batch."""
    queue, free = WorkQueue(threads=1), threading.Event()
    queue.submit(free.wait, client="busy")
    batches = Batches(queue, do)
    work = [batches.submit(text, client="a") for text in ("one", "other")]
    free.set()
    return work


def test_each_result_is_handed_on_as_soon_as_it_is_given() -> None:
    go = threading.Event()

    def do(asked: Sequence[str]) -> Iterator[str]:
        yield asked[0]
        go.wait()
        yield from asked[1:]

    one, other = waiting_together(do)
    assert one.result() == "one"
    assert not other.done()
    go.set()
    assert other.result() == "other"


def test_results_that_are_missing_are_an_error_for_whoever_waits() -> None:
    def one_alone(asked: Sequence[str]) -> Iterator[str]:
        yield asked[0]
        raise ZeroDivisionError

    one, other = waiting_together(one_alone)
    assert one.result() == "one"
    with pytest.raises(ZeroDivisionError):
        other.result()
