"""Reuse of memory and of compiled products by work that repeats: it changes times, and no number."""

from __future__ import annotations

import ctypes
import os
import platform
import threading
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from functools import cache

from rungwise.core.compute._memory import memory_limit

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3
"""Parameters of glibc's ``mallopt``."""
_HEAP_BLOCK = 32 << 20
"""Largest array that comes from the heap, which is as large as glibc allows."""
_KEPT = {_MMAP_THRESHOLD: _HEAP_BLOCK, _TRIM_THRESHOLD: (1 << 31) - 1, _TOP_PAD: 64 << 20}
_AFTER = {_MMAP_THRESHOLD: _HEAP_BLOCK, _TRIM_THRESHOLD: 2 * _HEAP_BLOCK, _TOP_PAD: 1 << 17}
"""As glibc adapts itself once a block of that size is freed; what is set no longer adapts."""
_SET_BY_USER = ("GLIBC_TUNABLES", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_")
_ROOM = 1 << 30
"""Bytes by which the heap grows in large pages; they take no memory before they are used."""
_LARGE_PAGE, _MADV_HUGEPAGE = 2 << 20, 14
_PRODUCTS = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"
_SHAPES = "16384"
"""Products whose code is kept; of a run's batches, levels, words and prefixes come in some thousand numbers."""

_blocks = 0
_counting = threading.Lock()


@contextmanager
def freed_memory_kept() -> Iterator[None]:
    """Context in which memory that is freed stays with this process for what is allocated next.

    The C library gives memory back to the system soon after it is freed, and the system fills what it gives anew with
    zeros, page by page. Each layer of a network frees and allocates arrays. Here freed memory stays until the block
    ends, and comes in large pages where the system has them. Only glibc has such settings: elsewhere, and where the
    user has chosen them, nothing changes.

    >>> with freed_memory_kept():
    ...     len(bytearray(1 << 20))
    1048576
    """
    global _blocks
    library = None if any(name in os.environ for name in _SET_BY_USER) else _glibc()
    if library is None:
        yield
        return
    with _counting:
        _blocks += 1
        if _blocks == 1:
            if memory_limit() is None:  # the room of a process that may have little is for others
                _grow_in_large_pages(library)
            _set(library, _KEPT)
    try:
        yield
    finally:
        with _counting:
            _blocks -= 1
            if not _blocks:
                _set(library, _AFTER)
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


def _grow_in_large_pages(library: ctypes.CDLL) -> None:
    """Let the heap grow now, and ask for large pages in what it grew by."""
    _set(library, {_MMAP_THRESHOLD: _HEAP_BLOCK, _TOP_PAD: _ROOM})
    begin = library.sbrk(0)
    # One of these does not fit into what the heap has, however much others have freed.
    blocks = [library.malloc(_HEAP_BLOCK // 2) for _ in range(8)]
    end = library.sbrk(0)
    for block in blocks:
        library.free(block)
    first = -(-begin // _LARGE_PAGE) * _LARGE_PAGE
    if end - first >= _LARGE_PAGE:
        library.madvise(first, (end - first) // _LARGE_PAGE * _LARGE_PAGE, _MADV_HUGEPAGE)


def _set(library: ctypes.CDLL, parameters: dict[int, int]) -> None:
    for parameter, value in parameters.items():
        library.mallopt(parameter, value)


@cache
def _glibc() -> ctypes.CDLL | None:
    if platform.libc_ver()[0] != "glibc":
        return None
    library = ctypes.CDLL(None)
    place, size = ctypes.c_void_p, ctypes.c_size_t
    library.sbrk.argtypes, library.sbrk.restype = [ctypes.c_ssize_t], place
    library.malloc.argtypes, library.malloc.restype = [size], place
    library.free.argtypes = [place]
    library.madvise.argtypes = [place, size, ctypes.c_int]
    return library
