"""How much memory this process has taken."""

from __future__ import annotations

import importlib.util
import sys

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
