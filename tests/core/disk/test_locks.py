import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack

import pytest

from rungwise.core import UserError
from rungwise.core.disk.locks import LOCK, alone, writing_alone

HOLD = """
import sys
from pathlib import Path
from rungwise.core.disk.locks import alone
with alone(Path(sys.argv[1]), "a training run"):
    print("held", flush=True)
    sys.stdin.read()
"""


class Clock:
    """Moves while somebody sleeps, and then does what is to happen."""

    def __init__(self, then: Callable[[float], object] = lambda now: None) -> None:
        self.now, self._then = 0.0, then

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self._then(self.now)


def test_a_second_one_is_refused_at_once_or_when_it_has_waited(tmp_path):
    clock = Clock()
    with alone(tmp_path / "run", "a training run"):
        with (
            pytest.raises(UserError, match=r"run: a training run writes here now; wait"),
            alone(tmp_path / "run", "a training run"),
        ):
            pass
        with (
            pytest.raises(UserError, match="has been writing here for 30 s; try again"),
            writing_alone(tmp_path / "run", 30, clock=clock, sleep=clock.sleep),
        ):
            pass
    assert clock.now == pytest.approx(30, abs=0.1)


def test_it_goes_on_as_soon_as_the_other_has_finished(tmp_path):
    other = ExitStack()
    other.enter_context(alone(tmp_path / "run", "a training run"))
    clock = Clock(lambda now: other.close() if now >= 7 else None)
    with writing_alone(tmp_path / "run", clock=clock, sleep=clock.sleep):
        assert clock.now == pytest.approx(7, abs=0.1)


def test_one_who_writes_without_a_break_keeps_nobody_out(tmp_path):
    """The second one looks only now and then; the first one is between two writes at no such moment."""
    writing = ExitStack()
    writing.enter_context(writing_alone(tmp_path))
    refused = []

    def writes_again(now: float) -> None:
        writing.close()
        mine = Clock()
        try:
            writing.enter_context(writing_alone(tmp_path, 0, clock=mine, sleep=mine.sleep))
        except UserError:
            refused.append(now)

    clock = Clock(writes_again)
    with writing_alone(tmp_path, clock=clock, sleep=clock.sleep):
        assert refused == [clock.now]
    with writing_alone(tmp_path, 0):
        pass


@pytest.mark.smoke
def test_a_second_process_is_refused_until_the_first_has_died(tmp_path):
    folder = tmp_path / "run"
    command = [sys.executable, "-c", HOLD, folder]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with pytest.raises(UserError, match=r"a training run writes here now"), alone(folder, "a training run"):
            pass
        process.kill()
        process.wait()
    with alone(folder, "a training run"):
        pass


def test_a_planted_link_is_not_followed(tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("years of work")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / LOCK).symlink_to(precious)
    with pytest.raises(UserError, match="another place"), alone(tmp_path / "run", "a training run"):
        pass
    assert precious.read_text() == "years of work"


def test_a_file_in_the_folder_s_place(tmp_path):
    (tmp_path / "run").touch()
    with pytest.raises(UserError, match="a file stands where a folder is needed"), alone(tmp_path / "run", "a run"):
        pass
