"""Compiled inner loops of ranking, and how they are put on threads.

Everything here is exact: ranks and lists break ties by the lower candidate index, and nothing depends on how rows or
columns are shared out. The first call on a machine compiles for some seconds; later processes load the result.
Kernels carry no annotations: numba types their arguments itself, by what they are called with.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:

    def njit(**options: Any) -> Callable[[Any], Any]:
        """Typed stand-in for numba's decorator, which has no types."""
        ...
else:
    from numba import njit

_SMALL = 1 << 18
"""Entries below which handing work to threads costs more than it saves."""

SORTING = 8
"""About how many times as long an entry takes that is sorted rather than looked at."""

_STRIP = 2048
"""Columns that are counted at a time, so that counts and bars stay in the nearest cache."""

_GLANCE = 32
"""Scores that are compared with a list's last entry in one go; only where one exceeds it are they looked at singly."""


def in_threads(work: Callable[[int, int], object], count: int, entries: int) -> None:
    """Call ``work(low, high)`` for parts of ``range(count)`` that together make it up, on every core.

    Args:
        work: Releases the interpreter's lock, writes where no other part does, and does not call this function.
        count: Length of the range.
        entries: Numbers that are read in all, times :data:`SORTING` where they are sorted; few are not worth a thread.

    >>> seen = []
    >>> in_threads(lambda low, high: seen.append((low, high)), 10, entries=100)
    >>> seen
    [(0, 10)]
    """
    threads = min(cores(), count) if entries >= _SMALL else 1
    if threads <= 1:
        work(0, count)
        return
    parts = min(count, 4 * threads)
    edges = [count * part // parts for part in range(parts + 1)]
    left = iter(range(parts))

    def take() -> None:
        for part in left:
            work(edges[part], edges[part + 1])

    # The caller works too: waking a thread may take as long as a part, and then nobody has waited for it.
    helpers = [_pool(os.getpid(), threads - 1).submit(take) for _ in range(threads - 1)]
    try:
        take()
    finally:
        for helper in helpers:
            if not helper.cancel():
                helper.result()


@cache
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    """Kept, since starting threads takes as long as many a block; a forked process has none of its parent's threads."""
    return ThreadPoolExecutor(threads, thread_name_prefix=f"rungwise-{process}")


def cores() -> int:
    """Cores that this process may use.

    >>> cores() >= 1
    True
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@njit(cache=True, nogil=True)
def rank_in_rows(scores, column, ranks, low, high):  # type: ignore[no-untyped-def]
    """``ranks[row]`` = rank from 1 of ``column[row]`` for rows low..high - 1: scores before it, by counting."""
    for row in range(low, high):
        line = scores[row]
        at = column[row]
        own = line[at]
        before = 1
        for start in range(0, at, _STRIP):
            part = line[start : min(start + _STRIP, at)]
            count: Any = np.int32(0)
            for each in range(len(part)):
                count = np.int32(count + np.int32(part[each] >= own))
            before += count
        for start in range(at + 1, len(line), _STRIP):
            part = line[start : min(start + _STRIP, len(line))]
            count = np.int32(0)
            for each in range(len(part)):
                count = np.int32(count + np.int32(part[each] > own))
            before += count
        ranks[row] = before


@njit(cache=True, nogil=True)
def count_in_columns(block, bar, counts, own, order, starts, low, high):  # type: ignore[no-untyped-def]
    """Add to ``counts[column]`` the rows of ``block`` above ``bar[column]``, for columns low..high - 1.

    ``order[starts[row]:starts[row + 1]]`` are the columns whose own row this is. Rows until then win ties (the bar is
    the next smaller number), later rows do not (the bar becomes the own score). Answers the first row with an own score
    that differs from the one announced, or -1.
    """
    seen = np.empty(_STRIP, np.int32)
    for left in range(low, high, _STRIP):
        right = min(left + _STRIP, high)
        width = right - left
        seen[:] = 0
        bars = bar[left:right]
        for row in range(len(block)):
            line = block[row, left:right]
            for each in range(width):
                seen[each] = np.int32(seen[each] + np.int32(line[each] > bars[each]))
            for place in range(starts[row], starts[row + 1]):
                column = order[place]
                if left <= column < right:
                    if line[column - left] != own[column]:
                        return row
                    seen[column - left] -= 1
                    bars[column - left] = own[column]
        for each in range(width):
            counts[left + each] += seen[each]
    return -1


@njit(cache=True, nogil=True)
def maxima_in_rows(scores, maxima, low, high):  # type: ignore[no-untyped-def]
    """``maxima[row - low]`` = the greatest of every so many scores, in rows low..high - 1."""
    lanes = maxima.shape[1]
    for row in range(low, high):
        line, best = scores[row], maxima[row - low]
        for each in range(lanes):
            best[each] = line[each]
        for start in range(lanes, len(line) - lanes + 1, lanes):
            part = line[start : start + lanes]
            for each in range(lanes):
                best[each] = part[each] if part[each] > best[each] else best[each]


@njit(cache=True, nogil=True)
def count_reaching(scores, bar, counts, low, high):  # type: ignore[no-untyped-def]
    """``counts[row - low]`` = scores that reach the row's bar, in rows low..high - 1."""
    for row in range(low, high):
        line, least = scores[row], bar[row - low]
        count = np.int32(0)
        for each in range(len(line)):
            count = np.int32(count + np.int32(line[each] >= least))
        counts[row - low] = count


@njit(cache=True, nogil=True)
def gather_reaching(scores, bar, values, columns, low, high):  # type: ignore[no-untyped-def]
    """The scores that reach the row's bar with their columns, in rows low..high - 1; -inf fills the rest.

    ``values`` and ``columns`` are wider by one than the most that reach.
    """
    for row in range(low, high):
        line, least = scores[row], bar[row - low]
        listed, column_of = values[row - low], columns[row - low]
        at = 0
        for start in range(0, len(line), _GLANCE):
            part = line[start : min(start + _GLANCE, len(line))]
            some = False
            for each in range(len(part)):
                some |= part[each] >= least
            if some:
                for each in range(len(part)):  # written in any case, kept if it counts: a branch would be guessed wrong
                    listed[at] = part[each]
                    column_of[at] = start + each
                    at += part[each] >= least
        listed[at:] = -np.inf
        column_of[at:] = 0


@njit(cache=True, nogil=True)
def take_in_rows(values, columns, taken, low, high):  # type: ignore[no-untyped-def]
    """``taken[row, place] = values[row, columns[row, place]]`` for rows low..high - 1."""
    for row in range(low, high):
        line, asked, out = values[row], columns[row], taken[row]
        for place in range(len(asked)):
            out[place] = line[asked[place]]


@njit(cache=True, nogil=True)
def offer_to_columns(block, other, first, values, rows, beside, low, high):  # type: ignore[no-untyped-def]
    """Put the rows of ``block`` into the columns' running lists, for columns low..high - 1.

    Row r of the block stands at position ``first + r``, and all rows before it were offered. ``values``, ``rows`` and
    ``beside`` are (columns, k): scores by falling value, whose they are, and the entries of ``other`` at those places.
    """
    k = values.shape[1]
    last = np.empty(_STRIP, values.dtype)
    for left in range(low, high, _STRIP):
        right = min(left + _STRIP, high)
        for column in range(left, right):
            last[column - left] = values[column, k - 1]
        for row in range(len(block)):
            line = block[row]
            full = first + row >= k
            for start in range(left, right, _GLANCE):
                stop = min(start + _GLANCE, right)
                if full:
                    above = False
                    part = line[start:stop]
                    bars = last[start - left : stop - left]
                    for each in range(len(part)):
                        above |= part[each] > bars[each]
                    if not above:
                        continue
                for column in range(start, stop):
                    value = line[column]
                    if not full:
                        at = first + row
                    elif value > last[column - left]:
                        at = k - 1
                    else:
                        continue
                    kept, kept_row, kept_beside = values[column], rows[column], beside[column]
                    while at > 0 and kept[at - 1] < value:
                        kept[at] = kept[at - 1]
                        kept_row[at] = kept_row[at - 1]
                        kept_beside[at] = kept_beside[at - 1]
                        at -= 1
                    kept[at] = value
                    kept_row[at] = first + row
                    kept_beside[at] = other[row, column]
                    last[column - left] = kept[k - 1]


@njit(cache=True, nogil=True)
def pack_falling(bits, packed, low, high):  # type: ignore[no-untyped-def]
    """Keys whose rising order is by falling float32, given by its ``bits``, then by rising column."""
    for row in range(low, high):
        line, keys = bits[row], packed[row]
        for column in range(len(line)):
            pattern = line[column]
            if pattern == np.uint32(0x80000000):  # -0.0 equals 0.0
                pattern = np.uint32(0)
            negative = pattern >> np.uint32(31)
            # Negative floats rise with falling bits, so their bits stand as they are and the others' are turned round.
            falling = pattern if negative else np.uint32(0x7FFFFFFF) - pattern
            keys[column] = (np.uint64(falling) << np.uint64(32)) | np.uint64(column)


@njit(cache=True, nogil=True)
def lower_index_first(scores, columns, low, high):  # type: ignore[no-untyped-def]
    """Put the columns of equal scores in rising order, in rows that are ordered by score."""
    for row in range(low, high):
        line, listed = scores[row], columns[row]
        start = 0
        while start < len(listed):
            stop = start + 1
            while stop < len(listed) and line[listed[stop]] == line[listed[start]]:
                stop += 1
            if stop - start > 1:
                listed[start:stop].sort()
            start = stop


@njit(cache=True, nogil=True)
def untie_in_rows(x, y, tied, low, high):  # type: ignore[no-untyped-def]
    """Sort y within runs of equal x, and count in ``tied[row]`` the pairs tied in x and the pairs tied in both."""
    for row in range(low, high):
        first, second = x[row], y[row]
        tied[row, 0] = tied[row, 1] = 0
        start = 0
        while start < len(first):
            stop = start + 1
            while stop < len(first) and first[stop] == first[start]:
                stop += 1
            if stop - start > 1:
                second[start:stop].sort()
                tied[row, 0] += (stop - start) * (stop - start - 1) // 2
                run = 0
                for place in range(start + 1, stop):
                    run = run + 1 if second[place] == second[place - 1] else 0
                    tied[row, 1] += run
            start = stop


@njit(cache=True, nogil=True)
def tau_in_rows(y, order, tied, tau, low, high):  # type: ignore[no-untyped-def]
    """``tau[row]`` = Kendall's tau-b of rows low..high - 1; 0 where x or y is constant.

    x is known to fall along the row, with y rising where x is equal; ``order`` puts y in rising order, and ``tied`` is
    what :func:`untie_in_rows` counted.
    """
    n = y.shape[1]
    pairs = n * (n - 1) // 2
    blocks = (n >> 12) + 1
    seen = np.empty(64 * blocks, np.uint64)
    in_block = np.empty(64 * blocks, np.int16)
    in_blocks = np.empty(blocks, np.int32)
    for row in range(low, high):
        places = order[row]
        tied_x, tied_both = tied[row]
        tied_y = 0
        run = 0
        for each in range(1, n):
            run = run + 1 if y[row, places[each]] == y[row, places[each - 1]] else 0
            tied_y += run
        falling = _inversions(places, seen, in_block, in_blocks)
        tau[row] = 0.0
        if tied_x < pairs and tied_y < pairs:
            surplus = 2 * falling - (pairs - tied_x - tied_y + tied_both)
            value = surplus / np.sqrt(pairs - tied_x) / np.sqrt(pairs - tied_y)
            tau[row] = min(1.0, max(-1.0, value))


@njit(cache=True, nogil=True)
def _inversions(places, seen, in_block, in_blocks):  # type: ignore[no-untyped-def]
    """Pairs of a permutation that stand in falling order.

    One place after the other is marked in a bitmap, after the marks below it were counted: in its word of 64 bits, in
    the words before in its block of 64 words, and in the blocks before. So a step adds to at most 64 counters, which
    stand side by side, and to one counter per 4096 places.
    """
    seen[:] = 0
    in_block[:] = 0
    in_blocks[:] = 0
    one = np.uint64(1)
    below = 0
    for each in range(len(places)):
        place = places[each]
        word = place >> 6
        block = place >> 12
        bit = one << np.uint64(place & 63)
        bits = seen[word] & (bit - one)
        bits = bits - ((bits >> one) & np.uint64(0x5555555555555555))
        bits = (bits & np.uint64(0x3333333333333333)) + ((bits >> np.uint64(2)) & np.uint64(0x3333333333333333))
        bits = (bits + (bits >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
        count = np.int64((bits * np.uint64(0x0101010101010101)) >> np.uint64(56))
        below += count + in_block[word] + in_blocks[block]
        seen[word] |= bit
        at = np.int16(word & 63)
        own = in_block[block << 6 : (block + 1) << 6]
        for later in range(64):  # all 64, since a fixed number of additions is one short run of vector instructions
            own[later] = np.int16(own[later] + np.int16(np.int16(later) > at))
        for later in range(block + 1, len(in_blocks)):
            in_blocks[later] += 1
    return len(places) * (len(places) - 1) // 2 - below
