"""Reuse of memory and of compiled products by work that repeats: it changes times, and no number."""

from __future__ import annotations

import ctypes
import os
import platform
import threading
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from functools import cache

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX = -1, -2, -4
"""Parameters of glibc's ``mallopt``."""
_KEPT = {_MMAP_MAX: 0, _TRIM_THRESHOLD: (1 << 31) - 1, _TOP_PAD: 1 << 28}
"""All memory comes from the heap, which grows by 256 MB at a time and does not shrink."""
_USUAL = {_MMAP_MAX: 1 << 16, _TRIM_THRESHOLD: 1 << 17, _TOP_PAD: 1 << 17}
_SET_BY_USER = ("GLIBC_TUNABLES", "MALLOC_MMAP_MAX_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_")
_PRODUCTS = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"
_SHAPES = "16384"
"""Products whose code is kept; of a run's batches, levels, words and prefixes come in some thousand numbers."""

_blocks = 0
_counting = threading.Lock()


@contextmanager
def freed_memory_kept() -> Iterator[None]:
    """Context in which memory that is freed stays with this process for what is allocated next.

    The C library gives each large array back to the system as soon as it is freed, and the system fills the memory of
    the next one with zeros, page by page. A training step frees and allocates hundreds. What is kept goes back when the
    block ends. Only glibc has such settings: elsewhere, and where the user has chosen them, nothing changes.

    >>> with freed_memory_kept():
    ...     len(bytearray(1 << 26))
    67108864
    """
    global _blocks
    library = None if any(name in os.environ for name in _SET_BY_USER) else _glibc()
    if library is None:
        yield
        return
    with _counting:
        _blocks += 1
        for parameter, value in _KEPT.items():
            library.mallopt(parameter, value)
    try:
        yield
    finally:
        with _counting:
            _blocks -= 1
            if not _blocks:
                for parameter, value in _USUAL.items():
                    library.mallopt(parameter, value)
                library.malloc_trim(0)


def keep_compiled_products(settings: MutableMapping[str, str] = os.environ) -> None:
    """Have torch keep the compiled code of products of thousands of shapes; by default it keeps that of 1,024.

    To be called before the first product: the library reads the setting once. What the user has set stays.

    >>> settings = {}
    >>> keep_compiled_products(settings)
    >>> settings
    {'ONEDNN_PRIMITIVE_CACHE_CAPACITY': '16384'}
    """
    settings.setdefault(_PRODUCTS, _SHAPES)


@cache
def _glibc() -> ctypes.CDLL | None:
    if platform.libc_ver()[0] != "glibc":
        return None
    library = ctypes.CDLL(None)
    return library if hasattr(library, "mallopt") and hasattr(library, "malloc_trim") else None
