import errno
import subprocess
import sys
from pathlib import Path

import pytest

from rungwise.core import UserError
from rungwise.core.compute import GB, nearly_out, peak_memory, ran_out, remedy, shortage
from rungwise.core.compute import _memory as memory


def test_the_peak_is_what_the_system_counts() -> None:
    status = Path("/proc/self/status")
    if not status.exists():
        pytest.skip("no /proc on this system")
    taken = bytearray(GB // 4)
    taken[::4096] = b"x" * len(taken[::4096])
    (line,) = [one for one in status.read_text().splitlines() if one.startswith("VmHWM:")]
    found = peak_memory()
    assert found is not None
    assert found >= GB // 4
    assert abs(found - 1024 * int(line.split()[1])) < GB // 64


SMALL = """
from rungwise.core.compute import peak_within
before = bytearray(1 << 28)
before[:: 1 << 12] = b"1" * len(before[:: 1 << 12])
del before
with peak_within() as peak:
    nothing = peak()
    held = bytearray(1 << 27)
    held[:: 1 << 12] = b"1" * len(held[:: 1 << 12])
    print(nothing, peak())
"""


@pytest.mark.smoke
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the system cannot begin anew")
def test_the_peak_of_late_forgets_what_was_before() -> None:
    """In a small process: of a large one the system may take back memory meanwhile."""
    run = subprocess.run([sys.executable, "-c", SMALL], stdout=subprocess.PIPE, text=True, check=True)
    nothing, much = map(int, run.stdout.split())
    assert much - nothing > 100_000_000
    assert nothing < 1 << 28


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        ImportError("libtorch_cuda.so: failed to map segment from shared object"),
        RuntimeError("can't start new thread"),
        RuntimeError("could not create a primitive"),
        RuntimeError("std::bad_alloc"),
        BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"),
    ],
)
def test_what_libraries_say_of_too_little_memory_is_known(error: Exception) -> None:
    assert ran_out(error)
    later = ImportError("numpy cannot be loaded")
    later.__cause__ = error
    assert ran_out(later)
    assert shortage(later) is error


@pytest.mark.parametrize(
    "error",
    [
        ImportError("No module named 'torch'"),
        FileNotFoundError(errno.ENOENT, "No such file", "a.jpg"),
        ValueError("a.csv, line 3: out of memory"),
        UserError("out of memory in training on cpu: lower batch_size"),
        SystemError("returned NULL without setting an exception"),
    ],
)
def test_other_errors_are_not_taken_for_it(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "memory_limit", lambda: None)
    assert not ran_out(error)


def test_where_memory_is_limited_an_error_without_a_word_is_taken_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "memory_limit", lambda: ("ulimit -v", 1 << 40))
    assert ran_out(SystemError("<built-in> returned NULL without setting an exception"))
    assert not nearly_out()
    assert remedy("").startswith("this process may have 1048576 MiB (ulimit -v): allow more")
    monkeypatch.setattr(memory, "memory_limit", lambda: ("ulimit -v", 1 << 20))
    assert nearly_out() or not Path("/proc/self/statm").exists()
