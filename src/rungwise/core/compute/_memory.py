"""Memory that this process has used and may use, and errors that mean there is no more."""

from __future__ import annotations

import errno
import importlib.util
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rungwise.core._errors import UserError

GB = 1 << 30


def peak_memory() -> int | None:
    """Peak resident memory of this process in bytes; None where the system has no answer."""
    if importlib.util.find_spec("resource") is None:  # on Windows
        return None
    import resource

    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size if sys.platform == "darwin" else 1024 * size


@contextmanager
def peak_within() -> Iterator[Callable[[], int | None]]:
    """Yield a function that tells the peak resident memory of this process since the block began, in bytes.

    Where the system cannot reset the peak, it is that since the process began.
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
    r"out of memory|(not enough|insufficient) memory|(can(no|')t|unable to|failed to|could not) (re)?allocate"
    r"|bad[_ ]alloc|alloc(ation)?[_ ]failed|failed to map segment|memory allocation of \d+ bytes failed"
    r"|memory allocation still failed|could not create a (primitive|memory)|(os error|errno) 12\b"
    r"|start new thread|(create|start|spawn) (a |new |another |OS )?(worker )?thread|thread creation failed"
    r"|ThreadPoolBuildError|pthread_create|resource temporarily unavailable",
    re.IGNORECASE,
)
"""Messages of libraries that got no memory; a thread needs some for its stack."""
_WITHOUT_A_WORD = "without setting an exception|without exception set"
"""Messages of the interpreter about a library that found no memory even for its error."""
_ASKED = re.compile(r"allocate:? (\d+ bytes|[\d.]+ [KMGTPE]i?B)", re.IGNORECASE)
_NEARLY = 256 << 20
"""Bytes that are left of a limit when an unforeseen error is taken for lack of memory."""
_OF_DATA = (LookupError, ValueError, TypeError, UserError)
"""Errors whose text may come from a file."""


def says_ran_out(text: str) -> bool:
    """Whether a library's message means that the machine or a GPU has no more memory, or no more threads."""
    return bool(_RAN_OUT.search(text))


def ran_out(error: BaseException) -> bool:
    """Whether an error, or one of its causes, means that the machine or a GPU has no more memory.

    A :class:`~rungwise.core.UserError` never counts: its message stays.

    >>> ran_out(MemoryError()), ran_out(RuntimeError("CUDA out of memory.")), ran_out(RuntimeError("no such network"))
    (True, True, False)
    """
    return not isinstance(error, UserError) and shortage(error) is not None


def shortage(error: BaseException) -> BaseException | None:
    """The error that means lack of memory, among an error and its causes; None if there is none."""
    found: BaseException | None = error
    seen: set[int] = set()
    while found is not None and id(found) not in seen:
        if _is_shortage(found):
            return found
        seen.add(id(found))
        found = found.__cause__ or found.__context__
    return None


def _is_shortage(error: BaseException) -> bool:
    if isinstance(error, MemoryError):
        return True
    if isinstance(error, OSError) and error.errno in (errno.ENOMEM, errno.EAGAIN):
        return True
    if isinstance(error, SystemError) and re.search(_WITHOUT_A_WORD, str(error)):
        return memory_limit() is not None
    return not isinstance(error, _OF_DATA) and says_ran_out(str(error))


def memory_limit() -> tuple[str, int] | None:
    """The shell's name of this process's memory limit, and its bytes; None where there is no limit."""
    if importlib.util.find_spec("resource") is None:  # on Windows
        return None
    import resource

    limits = [
        (resource.getrlimit(kind)[0], name)
        for kind, name in ((resource.RLIMIT_AS, "ulimit -v"), (resource.RLIMIT_DATA, "ulimit -d"))
    ]
    size, name = min((one for one in limits if one[0] != resource.RLIM_INFINITY), default=(0, ""))
    return (name, size) if name else None


_OF_THREADS = re.compile("thread|resource temporarily unavailable", re.IGNORECASE)


def remedy(reason: str) -> str:
    """The remedy for lack of memory, as the end of a line; ``reason`` is a library's message.

    >>> remedy("can't start new thread")
    'allow more threads (ulimit -u) or more memory'
    """
    smaller = "give smaller batches, smaller pictures or less data"
    if _OF_THREADS.search(reason):
        return "allow more threads (ulimit -u) or more memory"
    if (limit := memory_limit()) is None:
        return f"free some, or {smaller}"
    return f"this process may have {limit[1] >> 20} MiB ({limit[0]}): allow more, or {smaller}"


def nearly_out() -> bool:
    """Whether the system limits the memory of this process, and little is left of it."""
    if (limit := memory_limit()) is None:
        return False
    try:
        sizes = Path("/proc/self/statm").read_text().split()
    except (OSError, MemoryError):
        return False
    import resource

    taken = int(sizes[0 if limit[0] == "ulimit -v" else 5]) * resource.getpagesize()
    return limit[1] - taken < _NEARLY


def asked_for(error: BaseException) -> str:
    """The amount of memory that was asked for, if the error tells it; else empty.

    >>> asked_for(RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 4294967296 bytes"))
    '4.0 GiB'
    """
    found = _ASKED.search(str(error))
    if found is None:
        return ""
    number, unit = found[1].split()
    return f"{int(number) / GB:.1f} GiB" if unit == "bytes" else found[1]
