import math
from threading import Thread

from rungwise.core.network import answered_within, seconds_left


def test_the_earlier_deadline_counts_and_none_is_left_behind() -> None:
    with answered_within(1e6):
        outer = seconds_left()
        with answered_within(1e9):
            assert seconds_left() <= outer
        with answered_within(0):
            assert seconds_left() == 0
        assert 0 < seconds_left() <= outer
    assert seconds_left() == math.inf


def test_a_deadline_is_that_of_a_thread() -> None:
    seen: list[float] = []
    with answered_within(1):
        thread = Thread(target=lambda: seen.append(seconds_left()))
        thread.start()
        thread.join()
    assert seen == [math.inf]
