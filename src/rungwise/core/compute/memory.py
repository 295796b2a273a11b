"""How much memory this process has taken and may take, and whether an error says that there is no more."""

from __future__ import annotations

import errno
import importlib.util
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rungwise.core.errors import UserError

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
    r"out of memory|(not enough|insufficient) memory|(can(no|')t|unable to|failed to|could not) (re)?allocate"
    r"|bad[_ ]alloc|alloc(ation)?[_ ]failed|failed to map segment|memory allocation of \d+ bytes failed"
    r"|memory allocation still failed|could not create a (primitive|memory)|(os error|errno) 12\b"
    r"|start new thread|(create|start|spawn) (a |new |another |OS )?(worker )?thread|thread creation failed"
    r"|ThreadPoolBuildError|pthread_create|resource temporarily unavailable",
    re.IGNORECASE,
)
"""What libraries say that got no memory; a thread needs some for its stack."""
_WITHOUT_A_WORD = "without setting an exception|without exception set"
"""What the interpreter says of a library that found no memory for the error either."""
_ASKED = re.compile(r"allocate:? (\d+ bytes|[\d.]+ [KMGTPE]i?B)", re.IGNORECASE)
_NEARLY = 256 << 20
"""Bytes. Where less is left of a limit, what nobody foresaw is taken for want of memory."""
_OF_DATA = (LookupError, ValueError, TypeError, UserError)
"""Errors whose text may be what a file says."""


def says_ran_out(text: str) -> bool:
    """Whether a library's words mean that there is no more memory, of the machine or of a GPU, or no more thread.

    >>> says_ran_out("LLVM ERROR: out of memory"), says_ran_out("no such network")
    (True, False)
    """
    return bool(_RAN_OUT.search(text))


def ran_out(error: BaseException) -> bool:
    """Whether an error says, or came from one that says, that there is no more memory, of the machine or of a GPU.

    What a person is told in a :class:`~rungwise.core.errors.UserError` stays what it is.

    >>> ran_out(MemoryError()), ran_out(RuntimeError("CUDA out of memory.")), ran_out(RuntimeError("no such network"))
    (True, True, False)
    >>> ran_out(ImportError("libtorch_cpu.so: failed to map segment from shared object"))
    True
    """
    return not isinstance(error, UserError) and shortage(error) is not None


def shortage(error: BaseException) -> BaseException | None:
    """The error that says that there is no more memory, among an error and those that it came from.

    >>> shortage(ImportError("numpy cannot be loaded")) is None
    True
    """
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
    """How the shell names the limit of this process's memory, and how many bytes it allows; None where there is none.

    >>> limit = memory_limit()
    >>> limit is None or limit[0] in ("ulimit -v", "ulimit -d")
    True
    """
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
    """What to do where there is no more memory, as the end of a line.

    Args:
        reason: What a library says.

    >>> remedy("can't start new thread")
    'allow more threads (ulimit -u) or more memory'
    >>> remedy("").endswith("give smaller batches, smaller pictures or less data")
    True
    """
    smaller = "give smaller batches, smaller pictures or less data"
    if _OF_THREADS.search(reason):
        return "allow more threads (ulimit -u) or more memory"
    if (limit := memory_limit()) is None:
        return f"free some, or {smaller}"
    return f"this process may have {limit[1] >> 20} MiB ({limit[0]}): allow more, or {smaller}"


def nearly_out() -> bool:
    """Whether the system limits the memory of this process, and little is left of it.

    >>> nearly_out() in (True, False)
    True
    """
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
