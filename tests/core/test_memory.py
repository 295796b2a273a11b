import subprocess
import sys
from pathlib import Path

import pytest

from rungwise.core.memory import GB, peak_memory


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
from rungwise.core.memory import peak_within
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
