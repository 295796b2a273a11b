import threading

import pytest

from rungwise.core import threads
from rungwise.core.threads import cores, in_threads


@pytest.mark.parametrize("available", [1, 3])
@pytest.mark.parametrize("count", [0, 1, 2, 7, 100])
def test_the_parts_make_up_the_whole(monkeypatch, available, count):
    monkeypatch.setattr(threads, "cores", lambda: available)
    monkeypatch.setattr(threads, "_SMALL", 1)
    parts = []
    in_threads(lambda low, high: parts.append(range(low, high)), count, entries=1000)
    assert sorted(position for part in parts for position in part) == list(range(count))


def test_small_work_stays_on_the_callers_thread():
    at = []
    in_threads(lambda low, high: at.append(threading.get_ident()), 1000, entries=1000)
    assert at == [threading.get_ident()]


def test_an_error_in_a_part_reaches_the_caller(monkeypatch):
    monkeypatch.setattr(threads, "cores", lambda: 3)
    monkeypatch.setattr(threads, "_SMALL", 1)

    def work(low: int, high: int) -> None:
        if low <= 70 < high:
            raise ValueError("row 70")

    with pytest.raises(ValueError, match="row 70"):
        in_threads(work, 100, entries=1000)


def test_a_call_within_a_part_stays_on_its_thread(monkeypatch):
    monkeypatch.setattr(threads, "cores", lambda: 3)
    monkeypatch.setattr(threads, "_SMALL", 1)
    seen = []

    def outer(low: int, high: int) -> None:
        own = threading.get_ident()
        in_threads(lambda low, high: seen.append((threading.get_ident() == own, low, high)), 50, entries=1000)

    in_threads(outer, 10, entries=1000)
    assert set(seen) == {(True, 0, 50)}
    parts = []
    in_threads(lambda low, high: parts.append(low), 100, entries=1000)
    assert len(parts) > 1


def test_there_is_a_core():
    assert cores() >= 1
