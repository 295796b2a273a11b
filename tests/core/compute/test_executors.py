"""Parts of a piece of work, in this process and on Ray's workers, some of which die."""

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rungwise.core import UserError
from rungwise.core.compute import OnWorkers, cluster, in_turn


def test_in_turn_parts_are_taken_one_at_a_time():
    taken = []

    def parts():
        for number in range(3):
            taken.append(number)
            yield number

    done = in_turn(lambda common, part: common + part, 10, parts())
    assert next(done) == (0, 10)
    assert taken == [0]
    assert list(done) == [(1, 11), (2, 12)]


class WorkerError(Exception):
    """A worker has died."""


class TaskError(WorkerError):
    """A task has failed; Ray derives this error from the other one too."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


class InThisProcess:
    """In place of Ray: what workers would do is done here when its result is asked for, the last part first.

    Attributes:
        asked: How many tasks were handed out.
        cancelled: How many of them were given up.
    """

    exceptions = SimpleNamespace(RayError=WorkerError, RayTaskError=TaskError)

    def __init__(self, *machines: int) -> None:
        self._machines = machines
        self.asked = self.cancelled = 0

    def nodes(self) -> list[dict[str, Any]]:
        alive = [{"Alive": True, "Resources": {"CPU": float(cores)}} for cores in self._machines]
        return [*alive, {"Alive": False, "Resources": {"CPU": 1.0}}, {"Alive": True, "Resources": {}}]

    def remote(self, **settings: object) -> Callable[[Any], Any]:
        return lambda function: SimpleNamespace(remote=lambda *given: self._task(function, given))

    def _task(self, function: Callable[..., object], given: tuple[object, ...]) -> Callable[[], object]:
        self.asked += 1
        return lambda: function(*given)

    def put(self, value: object) -> object:
        if isinstance(value, type(threading.Lock())):
            raise TypeError("cannot pickle\na lock")
        return value

    def wait(self, tasks: list[Any]) -> tuple[list[Any], list[Any]]:
        return tasks[-1:], tasks[:-1]

    def get(self, task: Callable[[], object]) -> object:
        try:
            return task()
        except WorkerError:
            raise
        except Exception as error:
            raise TaskError(error) from error

    def cancel(self, task: object, force: bool) -> None:
        self.cancelled += 1


def test_there_are_as_many_workers_as_cores_or_groups_of_them():
    assert OnWorkers(InThisProcess(2, 4)).workers == 6
    assert OnWorkers(InThisProcess(2, 4), cores=8).workers == 3, "a part has as many cores as the smallest machine"
    assert OnWorkers(InThisProcess()).workers == 1


@pytest.mark.parametrize("cores", [1, 2])
def test_parts_are_asked_for_as_workers_get_free(cores):
    ray = InThisProcess(2)
    share = OnWorkers(ray, cores=cores)
    done = share(lambda common, part: common * part, 3, iter(range(20)))
    first = next(done)
    assert ray.asked == 2 * share.workers
    assert sorted([first, *done]) == [(number, 3 * number) for number in range(20)]
    assert (ray.asked, ray.cancelled) == (20, 0)


def test_who_stops_reading_gives_up_what_was_handed_out():
    ray = InThisProcess(1)
    done = OnWorkers(ray)(lambda _, part: part, None, range(20))
    next(done)
    done.close()
    assert (ray.asked, ray.cancelled) == (2, 1)


def test_what_goes_wrong_with_workers_is_one_line():
    ray = InThisProcess(1)

    def fail(_: object, error: Exception) -> None:
        raise error

    for error, said in (
        (UserError("part 7: no such thing"), r"^part 7: no such thing$"),
        (ValueError("part 7\nis odd"), r"^Ray: a worker failed: ValueError: part 7 is odd$"),
        (WorkerError("killed"), r"^Ray: workers died 4 times over one part \(killed\); .*more memory$"),
    ):
        with pytest.raises(UserError, match=said):
            list(OnWorkers(ray)(fail, None, [error]))
    with pytest.raises(UserError, match=r"cannot be sent to other processes \(cannot pickle a lock\); leave Ray out"):
        list(OnWorkers(ray)(fail, threading.Lock(), []))


@pytest.mark.slow
def test_workers_do_every_part_once_in_processes_of_their_own(two_workers: None):
    with cluster() as ray:
        share = OnWorkers(ray)
        assert share.workers == 2
        found = dict(share(lambda common, part: (common * part, os.getpid()), 3, range(9)))
    assert [found[number][0] for number in range(9)] == [3 * part for part in range(9)]
    assert os.getpid() not in {process for _, process in found.values()}


@pytest.mark.slow
def test_a_worker_that_is_killed_loses_nothing(two_workers: None, tmp_path: Path):
    def fatal_once(place: str, part: int) -> int:
        mark = Path(place) / "killed"
        if part == 1 and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return 10 * part

    with cluster() as ray:
        found = dict(OnWorkers(ray)(fatal_once, str(tmp_path), range(4)))
    assert (tmp_path / "killed").exists()
    assert found == {0: 0, 1: 10, 2: 20, 3: 30}


@pytest.mark.slow
def test_what_kills_every_worker_is_one_line(two_workers: None, tmp_path: Path):
    def fatal(place: str, _: int) -> None:
        (Path(place) / str(os.getpid())).touch()
        os.kill(os.getpid(), signal.SIGKILL)

    with cluster() as ray, pytest.raises(UserError, match=r"^Ray: workers died 4 times over one part .*more memory$"):
        list(OnWorkers(ray)(fatal, str(tmp_path), [0]))
    assert len(list(tmp_path.iterdir())) == 4


@pytest.mark.slow
def test_errors_of_workers_are_one_line(two_workers: None):
    def refuse(_: None, part: int) -> None:
        raise UserError(f"part {part}: no such thing")

    def break_down(_: None, part: int) -> None:
        raise ValueError(f"part {part}\nis odd")

    with cluster() as ray:
        with pytest.raises(UserError, match=r"^part 7: no such thing$"):
            list(OnWorkers(ray)(refuse, None, [7]))
        with pytest.raises(UserError, match=r"^Ray: a worker failed: ValueError: part 7 is odd$"):
            list(OnWorkers(ray)(break_down, None, [7]))
