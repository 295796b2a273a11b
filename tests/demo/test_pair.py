"""Two trainings at once: they end together, whatever ends one of them.

Also tests rungwise.demo._worker.
"""

import io
import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest
from rich.console import Console

from rungwise.core import UserError
from rungwise.demo import Bars, Places, titles
from rungwise.demo import _pair as pair
from rungwise.demo._pair import train_both
from rungwise.demo._places import NAMES
from rungwise.demo._worker import main


@pytest.fixture
def bars():
    return Bars(titles(), Console(force_terminal=False))


@pytest.fixture
def workers(monkeypatch, tmp_path):
    """Puts a program in the place of a training; it gets the model's name, and a folder for its traces."""

    def replaced(program: str) -> None:
        file = tmp_path / "worker.py"
        file.write_text(textwrap.dedent(program), encoding="utf-8")
        real = subprocess.Popen
        monkeypatch.setattr(
            pair.subprocess, "Popen", lambda command, **more: real([sys.executable, str(file), *command[3:]], **more)
        )

    return replaced


@pytest.mark.slow
def test_an_error_of_one_is_one_line_and_ends_the_other(workers, bars, tmp_path):
    workers(
        """
        import json, os, pathlib, signal, sys, time
        name, folder = sys.argv[1:3]
        pathlib.Path(folder, name).write_text(str(os.getpid()))
        traces = [pathlib.Path(folder, one) for one in ("triplet", "degrees")]
        while not all(trace.exists() and trace.stat().st_size for trace in traces):  # begun, and written
            time.sleep(0.01)
        if name == "triplet":
            print(json.dumps({"error": "the disk is full"}), flush=True)
        signal.pause()
        """
    )
    with pytest.raises(UserError, match=r"^training of the model 'triplet' failed: the disk is full$"):
        train_both(Places(tmp_path), "cpu", bars)
    for name in NAMES:
        with pytest.raises(ProcessLookupError):
            os.kill(int((tmp_path / name).read_text()), 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("raise ValueError('no\\nluck')", "luck"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "ended by signal 9"),
        ("import sys; print('odd line'); print('[1]'); sys.exit(3)", "its process ended with 3"),
    ],
)
def test_a_process_that_dies_says_why_in_one_line(workers, bars, tmp_path, program, reason):
    workers(program)
    with pytest.raises(UserError, match=reason) as caught:
        train_both(Places(tmp_path), "cpu", bars)
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_ctrl_c_ends_both(workers, monkeypatch, tmp_path):
    workers(
        """
        import os, pathlib, signal, sys
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        pathlib.Path(sys.argv[2], sys.argv[1]).write_text(str(os.getpid()))
        print('{"title": "epoch 1/2", "done": 1, "total": 2}', flush=True)
        signal.pause()
        """
    )

    class Interrupting(Bars):
        def show(self, name, told):
            traces = [tmp_path / one for one in NAMES]
            while not all(trace.exists() and trace.stat().st_size for trace in traces):  # begun, and written
                time.sleep(0.01)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_both(Places(tmp_path), "cpu", Interrupting(titles(), Console(force_terminal=False)))
    for name in NAMES:
        with pytest.raises(ProcessLookupError):
            os.kill(int((tmp_path / name).read_text()), 0)


@pytest.mark.smoke
def test_both_done_is_done(workers, bars, tmp_path):
    workers("print('{\"rsum\": 300.0}', flush=True)")
    train_both(Places(tmp_path), "cpu", bars)


class Ended:
    """A process that is over."""

    def __init__(self, told, code):
        self.stdout = io.StringIO(told)
        self._code = code

    def poll(self):
        return self._code

    wait = poll


@pytest.mark.parametrize(
    ("told", "complaint", "code", "reason"),
    [
        ('{"error": "the disk is full"}\n', b"", 2, "the disk is full"),
        ("", b"Traceback\nValueError: no\nluck\n", 1, "luck"),
        ("", b"", -9, "ended by signal 9"),
        ("odd line\n[1]\n", b"", 3, "its process ended with 3"),
    ],
)
def test_why_a_training_ended_is_said_in_one_line(monkeypatch, bars, tmp_path, told, complaint, code, reason):
    def started(command, *, stderr, **_):
        stderr.write(complaint)
        return Ended(told, code)

    monkeypatch.setattr(pair.subprocess, "Popen", started)
    with pytest.raises(UserError, match=reason) as caught:
        train_both(Places(tmp_path), "cpu", bars)
    assert "\n" not in str(caught.value)


def test_a_worker_tells_its_error(tmp_path, capsys):
    before = signal.getsignal(signal.SIGINT)
    try:
        assert main(["triplet", str(tmp_path), "vsepp", "cpu"]) == 2
    finally:
        signal.signal(signal.SIGINT, before)
    assert '{"error": "' in capsys.readouterr().out
