import _thread
import threading
from collections.abc import Callable

import pytest

from rungwise.core.compute import _threads as threads
from rungwise.core.compute import cores, in_threads, settle_for_fewer, shared_environment, startable, thread_pool


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


def starting(monkeypatch: pytest.MonkeyPatch, *begin_well: bool) -> None:
    """Which of the threads start from now on; after these none does."""
    start, left = threading.Thread.start, list(begin_well)

    def begin(thread: threading.Thread) -> None:
        if not left or not left.pop(0):
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", begin)


def test_threads_that_do_not_start_mean_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    starting(monkeypatch, True, True, False, True, True)  # two of four that are tried, then two that are kept
    done: set[str] = set()
    initialised: list[int] = []
    with thread_pool(4, name="few", initializer=lambda: initialised.append(threading.get_ident())) as pool:
        assert list(pool.map(lambda one: (done.add(threading.current_thread().name), one)[1], range(100))) == [
            *range(100)
        ]
    assert len(initialised) == 4
    assert done <= {"few_0", "few_1"}


def test_without_a_thread_the_caller_does_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    starting(monkeypatch)
    with thread_pool(4) as pool:
        assert pool.submit(threading.get_ident).result() == threading.get_ident()
        with pytest.raises(ZeroDivisionError):
            pool.submit(lambda: 1 / 0).result()


def test_parts_are_worked_on_without_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "cores", lambda: 7)  # a number of threads that no other test keeps
    monkeypatch.setattr(threads, "_SMALL", 1)
    threads._pool.cache_clear()
    starting(monkeypatch)
    parts: list[range] = []
    in_threads(lambda low, high: parts.append(range(low, high)), 100, entries=1000)
    threads._pool.cache_clear()
    assert sorted(position for part in parts for position in part) == list(range(100))


def begin_threads(monkeypatch: pytest.MonkeyPatch, most: int, begun: int) -> None:
    """Let the system start so many threads from now on, of which some find no memory to run."""
    start, tried = _thread.start_new_thread, []

    def begin(run: Callable[[], None], arguments: tuple[()]) -> None:
        tried.append(run)
        if len(tried) > most:
            raise RuntimeError("can't start new thread")
        if len(tried) <= begun:
            start(run, arguments)

    monkeypatch.setattr(_thread, "start_new_thread", begin)


@pytest.mark.parametrize("most", [0, 2, 5])
def test_threads_that_start_are_counted(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    begin_threads(monkeypatch, most, begun=most)
    assert startable(4) == min(most, 4)


def test_a_thread_that_finds_no_memory_to_run_is_not_waited_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_LATE", 0.01)
    begin_threads(monkeypatch, 4, begun=3)
    assert startable(4) == 3


def test_libraries_take_one_thread_each_where_few_start(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"OMP_NUM_THREADS": "3"}
    assert not settle_for_fewer(settings)
    assert settings == {"OMP_NUM_THREADS": "3"}
    begin_threads(monkeypatch, 3, begun=3)
    assert settle_for_fewer(settings)
    assert settings["OMP_NUM_THREADS"] == "3"
    assert settings["OPENBLAS_NUM_THREADS"] == "1"
    assert settings["TOKENIZERS_PARALLELISM"] == "false"


def test_processes_divide_threads(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    assert shared_environment(4)["OMP_NUM_THREADS"] == "2"
    assert shared_environment(1)["OMP_NUM_THREADS"] == "1"
    assert shared_environment(4)["MKL_NUM_THREADS"] == "4"
