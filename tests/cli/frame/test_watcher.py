"""What a second process says of a command that ended for want of memory."""

import os
import signal
import subprocess
import sys

import pytest

from rungwise.cli.frame import _watcher as watcher
from rungwise.cli.frame._watcher import _forwarded, _told

NAME = "rungwise index"
MIB = 1 << 20


@pytest.mark.parametrize(
    ("ended", "held", "code", "line"),
    [
        (-signal.SIGABRT, "LLVM ERROR: out of memory\n", 2, f"{NAME}: out of memory (LLVM ERROR: out of memory); "),
        (-signal.SIGSEGV, "", 2, f"{NAME}: out of memory (a library ended the process: Segmentation fault); "),
        (1, "OpenBLAS error: Memory allocation still failed after 10 retries\n", 2,
         f"{NAME}: out of memory (OpenBLAS error: Memory allocation still failed after 10 retries); "),
        (1, "libgomp: Thread creation failed: Resource temporarily unavailable\n", 2,
         f"{NAME}: out of memory (libgomp: Thread creation failed: Resource temporarily unavailable); allow more"),
        (2, f"Exception ignored in: x\nMemoryError\n{NAME}: out of memory (x); free some\n", 2,
         f"{NAME}: out of memory (x); free some"),
        (2, f"thread 'x' panicked at y\nOS can't spawn worker thread\n{NAME}: a: damaged (future panicked); make\n", 2,
         f"{NAME}: out of memory (OS can't spawn worker thread); "),
        (2, f"out of memory, said a.csv\n{NAME}: a.csv: wrong; correct it\n", 2, "out of memory, said a.csv"),
        (0, "out of memory, said a caption\n", 0, "out of memory, said a caption"),
        (1, "", 1, ""),
    ],
)  # fmt: skip
def test_an_end_is_told_in_one_line(
    ended: int, held: str, code: int, line: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert _told(NAME, ended, held.encode(), 2) == code
    said = capfd.readouterr().err
    assert said.startswith(line)
    assert said == held or len(said.splitlines()) == 1


def test_lines_come_through_until_one_may_be_the_last(capfd: pytest.CaptureFixture[str]) -> None:
    said, ours = os.pipe()
    os.write(ours, b"a picture was left out\nprogress\rhalf a li")
    os.write(ours, b"ne\nterminate called after throwing std::bad_alloc\n  what(): std::bad_alloc\n")
    os.close(ours)
    held = _forwarded(said)
    os.close(said)
    assert capfd.readouterr().err == "a picture was left out\nprogress\rhalf a line\n"
    assert held == b"terminate called after throwing std::bad_alloc\n  what(): std::bad_alloc\n"


def test_what_is_held_for_long_comes_through(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher, "_MOST_HELD", 40)
    said, ours = os.pipe()
    os.write(ours, b"Traceback (most recent call last):\n  a frame\nan error\n")
    os.close(ours)
    assert _forwarded(said) == b""
    os.close(said)
    assert capfd.readouterr().err.endswith("an error\n")


def limited(code: str, most: int = 200 * MIB) -> subprocess.CompletedProcess[str]:
    """A command in a process of little memory, with code that runs in place of what the command does."""
    head = f"import os, resource, signal, sys\nresource.setrlimit(resource.RLIMIT_AS, ({most}, {most}))\n"
    code = f"{head}from rungwise import cli\ndef run(*_):\n    {code}\ncli._run = run\nsys.exit(cli.main())"
    return subprocess.run([sys.executable, "-c", code, "index"], capture_output=True, text=True, check=False)


@pytest.mark.smoke
def test_a_library_that_ends_the_process_is_one_line() -> None:
    run = limited("os.write(2, b'memory allocation of 96 bytes failed\\n'); os.abort()")
    assert run.returncode == 2
    assert run.stderr.startswith(
        "rungwise index: out of memory (memory allocation of 96 bytes failed); this process may"
    )
    assert len(run.stderr.splitlines()) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "status", "said"),
    [
        ("bytearray(1 << 30)", 2, "rungwise index: out of memory (no reason given); this process may have 200 MiB"),
        ("print('done'); return 0", 0, ""),
        ("raise KeyboardInterrupt", 130, "\nrungwise index: interrupted\n"),
        ("print('a warning', file=sys.stderr); return 1", 1, "a warning\n"),
        ("os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM, ""),
        ("os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL, ""),
        ("os.kill(os.getppid(), signal.SIGTERM); signal.pause()", -signal.SIGTERM, ""),
    ],
)
def test_a_command_in_little_memory_ends_as_without_a_watcher(code: str, status: int, said: str) -> None:
    run = limited(code)
    assert run.returncode == status
    assert run.stderr.startswith(said)
    assert len(run.stderr.splitlines()) == len(said.splitlines())
