"""Parts of a piece of work, in this process and on Ray's workers, some of which die."""

import os
import signal
from pathlib import Path

import pytest

from rungwise.core.cluster import cluster
from rungwise.core.errors import UserError
from rungwise.core.sharing import OnWorkers, in_turn


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


def test_workers_do_every_part_once_in_processes_of_their_own(two_workers: None):
    with cluster() as ray:
        share = OnWorkers(ray)
        assert share.workers == 2
        found = dict(share(lambda common, part: (common * part, os.getpid()), 3, range(9)))
    assert [found[number][0] for number in range(9)] == [3 * part for part in range(9)]
    assert os.getpid() not in {process for _, process in found.values()}


def test_parts_are_asked_for_as_workers_get_free(two_workers: None):
    taken = []

    def parts():
        for number in range(20):
            taken.append(number)
            yield number

    with cluster() as ray:
        done = OnWorkers(ray)(lambda _, part: part, None, parts())
        next(done)
        assert len(taken) <= 5
        assert sorted(number for number, _ in done) == sorted(set(range(20)) - {0}) or len(taken) == 20


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


def test_what_kills_every_worker_is_one_line(two_workers: None, tmp_path: Path):
    def fatal(place: str, _: int) -> None:
        (Path(place) / str(os.getpid())).touch()
        os.kill(os.getpid(), signal.SIGKILL)

    with cluster() as ray, pytest.raises(UserError, match=r"^Ray: workers died 4 times over one part .*more memory$"):
        list(OnWorkers(ray)(fatal, str(tmp_path), [0]))
    assert len(list(tmp_path.iterdir())) == 4


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
