import signal
import threading

import pytest

from rungwise.training.engine._stop_requests import stop_requests


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_request_is_noted_and_the_second_interrupts(number: int) -> None:
    before = signal.getsignal(number)
    with stop_requests() as stop:
        assert not stop.is_set()
        signal.raise_signal(number)
        assert stop.is_set()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
    assert signal.getsignal(number) is before


def test_in_another_thread_nothing_is_changed() -> None:
    found: list[bool] = []

    def work() -> None:
        before = signal.getsignal(signal.SIGINT)
        with stop_requests() as stop:
            found.append(signal.getsignal(signal.SIGINT) is before and not stop.is_set())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [True]
