"""Compiled inner loops of ranking, and how they are put on threads.

Everything here is exact: ranks and lists break ties by the lower candidate index, and nothing depends on how rows or
columns are shared out. The first call on a machine compiles for some seconds; later processes load the result.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
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

_STRIP = 2048
"""Columns that are counted at a time, so that counts and bars stay in the nearest cache."""

_GLANCE = 32
"""Scores that are compared with a list's last entry in one go; only where one exceeds it are they looked at singly."""

_RUN = 12
"""Runs of this length are sorted by insertion before they are merged."""


def in_threads(work: Callable[[int, int], object], count: int, entries: int) -> None:
    """Call ``work(low, high)`` for parts of ``range(count)`` that together make it up, on every core.

    Args:
        work: Releases the interpreter's lock and writes where no other part does.
        count: Length of the range.
        entries: Numbers that are read in all; few are not worth a thread.

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
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, edges[:-1], edges[1:]))


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
            count = np.int32(0)
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
def top_in_rows(scores, columns, low, high):  # type: ignore[no-untyped-def]
    """``columns[row]`` = the first columns of rows low..high - 1 by falling score, ties to the lower; short lists."""
    k = columns.shape[1]
    values = np.empty(k, scores.dtype)
    for row in range(low, high):
        line = scores[row]
        listed = columns[row]
        length = 0
        for start in range(0, len(line), _GLANCE):
            part = line[start : min(start + _GLANCE, len(line))]
            if length == k:
                above = False
                for each in range(len(part)):
                    above |= part[each] > values[k - 1]
                if not above:
                    continue
            for each in range(len(part)):
                value = part[each]
                if length < k:
                    at = length
                    length += 1
                elif value > values[k - 1]:
                    at = k - 1
                else:
                    continue
                while at > 0 and values[at - 1] < value:
                    values[at] = values[at - 1]
                    listed[at] = listed[at - 1]
                    at -= 1
                values[at] = value
                listed[at] = start + each


@njit(cache=True, nogil=True)
def offer_to_columns(block, other, first, length, values, rows, beside, low, high):  # type: ignore[no-untyped-def]
    """Put the rows of ``block`` into the columns' running lists, for columns low..high - 1.

    Row r of the block stands at position ``first + r``; the lists hold ``length`` entries already. ``values``, ``rows``
    and ``beside`` are (columns, k): scores by falling value, whose they are, and the entry of ``other`` at that place.
    """
    k = values.shape[1]
    last = np.empty(high - low, values.dtype)
    for column in range(low, high):
        last[column - low] = values[column, k - 1]
    for row in range(len(block)):
        line = block[row]
        full = length + row >= k
        for start in range(low, high, _GLANCE):
            stop = min(start + _GLANCE, high)
            if full:
                above = False
                part = line[start:stop]
                bars = last[start - low : stop - low]
                for each in range(len(part)):
                    above |= part[each] > bars[each]
                if not above:
                    continue
            for column in range(start, stop):
                value = line[column]
                if not full:
                    at = length + row
                elif value > last[column - low]:
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
                last[column - low] = kept[k - 1]


@njit(cache=True, nogil=True)
def pack_falling(bits, packed, low, high):  # type: ignore[no-untyped-def]
    """Keys whose rising order is by falling float32, given by its ``bits``, then by rising column."""
    for row in range(low, high):
        line, keys = bits[row], packed[row - low]
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
def inversions_in_rows(ranks, counts, low, high):  # type: ignore[no-untyped-def]
    """``counts[row]`` = pairs of the row in falling order, for rows low..high - 1; the rows end up sorted."""
    spare = np.empty(ranks.shape[1], ranks.dtype)
    for row in range(low, high):
        counts[row] = _sort_and_count(ranks[row], spare)


@njit(cache=True, nogil=True)
def tau_in_rows(x, y, tau, low, high):  # type: ignore[no-untyped-def]
    """``tau[row]`` = Kendall's tau-b of rows low..high - 1 whose x falls; 0 where one is constant. Sorts y."""
    n = x.shape[1]
    pairs = n * (n - 1) // 2
    spare = np.empty(n, y.dtype)
    for row in range(low, high):
        first, second = x[row], y[row]
        tied_x = 0
        tied_both = 0
        start = 0
        while start < n:
            stop = start + 1
            while stop < n and first[stop] == first[start]:
                stop += 1
            length = stop - start
            if length > 1:
                tied_x += length * (length - 1) // 2
                _sort_and_count(second[start:stop], spare)
                tied_both += _tied_pairs(second[start:stop])
            start = stop
        in_agreement = _sort_and_count(second, spare)
        tied_y = _tied_pairs(second)
        tau[row] = 0.0
        if tied_x < pairs and tied_y < pairs:
            surplus = 2 * in_agreement - (pairs - tied_x - tied_y + tied_both)
            value = surplus / np.sqrt(pairs - tied_x) / np.sqrt(pairs - tied_y)
            tau[row] = min(1.0, max(-1.0, value))


@njit(cache=True, nogil=True)
def _tied_pairs(ordered):  # type: ignore[no-untyped-def]
    total = 0
    run = 0
    for place in range(1, len(ordered)):
        run = run + 1 if ordered[place] == ordered[place - 1] else 0
        total += run
    return total


@njit(cache=True, nogil=True)
def _sort_and_count(values, spare):  # type: ignore[no-untyped-def]
    """Merge sort in place; answers the pairs that stood in falling order (Knight 1966)."""
    n = len(values)
    count = 0
    for start in range(0, n, _RUN):
        for place in range(start + 1, min(start + _RUN, n)):
            value = values[place]
            at = place
            while at > start and values[at - 1] > value:
                values[at] = values[at - 1]
                at -= 1
            values[at] = value
            count += place - at
    source, target = values, spare[:n]
    half = _RUN
    merges = 0
    while half < n:
        for start in range(0, n, 2 * half):
            middle, stop = min(start + half, n), min(start + 2 * half, n)
            left, right, at = start, middle, start
            while left < middle and right < stop:
                a, b = source[left], source[right]
                falls = np.int64(b < a)
                target[at] = b if b < a else a
                count += falls * (middle - left)
                right += falls
                left += 1 - falls
                at += 1
            while left < middle:
                target[at] = source[left]
                left += 1
                at += 1
            while right < stop:
                target[at] = source[right]
                right += 1
                at += 1
        source, target = target, source
        half *= 2
        merges += 1
    if merges % 2:
        values[:] = spare[:n]
    return count
