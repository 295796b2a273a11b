"""How much memory this process has taken, and whether an error says that there is no more."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

GB = 1 << 30


def peak_memory() -> int | None:
    """The most memory that was resident in this process at a time, in bytes; None where the system has no answer.

    >>> peak = peak_memory()
    >>> peak is None or peak > 1_000_000
    True
    """
    if importlib.util.find_spec("resource") is None:  # on Windows
        return None
    import resource

    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size if sys.platform == "darwin" else 1024 * size


@contextmanager
def peak_within() -> Iterator[Callable[[], int | None]]:
    """Yield what tells the most memory that was resident in this process at a time since the block began, in bytes.

    Where the system cannot begin anew, it is the most since the process began.

    >>> with peak_within() as peak:
    ...     pass
    >>> size = peak()
    >>> size is None or size > 1_000_000
    True
    """
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    yield _peak_of_late


def _peak_of_late() -> int | None:
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return 1024 * int(line.split()[1])
    return peak_memory()


_RAN_OUT = re.compile(
    r"out of memory|not enough memory|can(no|')t allocate memory|unable to allocate|bad_alloc|alloc_failed",
    re.IGNORECASE,
)
_ASKED = re.compile(r"allocate:? (\d+ bytes|[\d.]+ [KMGTPE]i?B)", re.IGNORECASE)


def ran_out(error: BaseException) -> bool:
    """Whether an error, of Python, numpy or torch, says that there is no more memory, of the machine or of a GPU.

    >>> ran_out(MemoryError()), ran_out(RuntimeError("CUDA out of memory.")), ran_out(RuntimeError("no such network"))
    (True, True, False)
    """
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and bool(_RAN_OUT.search(str(error))))


def asked_for(error: BaseException) -> str:
    """How much more was asked for, where the error says that.

    >>> asked_for(RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 4294967296 bytes"))
    '4.0 GiB'
    >>> asked_for(MemoryError())
    ''
    """
    found = _ASKED.search(str(error))
    if found is None:
        return ""
    number, unit = found[1].split()
    return f"{int(number) / GB:.1f} GiB" if unit == "bytes" else found[1]
