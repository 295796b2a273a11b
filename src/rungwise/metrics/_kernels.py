"""Compiled inner loops of ranking, which :mod:`rungwise.core.compute._threads` runs on threads.

All results are exact: ranks and lists break ties by the lower candidate index, and nothing depends on how rows or
columns are divided among threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rungwise.core.compute import kernel, kernel_or

_STRIP = 2048
"""Number of columns counted at a time, so that counts and bars stay in the nearest cache."""

_GLANCE = 32
"""Number of scores compared with a list's last entry at once; single scores are looked at only where one exceeds it."""


def plain_rank_in_rows(scores, column, ranks, low, high):  # type: ignore[no-untyped-def]
    """What :func:`rank_in_rows` does, by numpy."""
    for row in range(low, high):
        line, at = scores[row], column[row]
        ranks[row] = 1 + np.count_nonzero(line[:at] >= line[at]) + np.count_nonzero(line[at + 1 :] > line[at])


@kernel_or(plain_rank_in_rows)
def rank_in_rows(scores, column, ranks, low, high):  # type: ignore[no-untyped-def]
    """``ranks[row]`` = rank from 1 of ``column[row]`` for rows low..high - 1, by counting the scores before it."""
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


def plain_count_in_columns(block, bar, counts, own, order, starts, low, high):  # type: ignore[no-untyped-def]
    """What :func:`count_in_columns` does, by numpy."""
    for row, line in enumerate(block):
        counts[low:high] += line[low:high] > bar[low:high]
        for place in range(starts[row], starts[row + 1]):
            column = order[place]
            if low <= column < high:
                if line[column] != own[column]:
                    return row
                counts[column] -= 1
                bar[column] = own[column]
    return -1


@kernel_or(plain_count_in_columns)
def count_in_columns(block, bar, counts, own, order, starts, low, high):  # type: ignore[no-untyped-def]
    """Add to ``counts[column]`` the rows of ``block`` above ``bar[column]``, for columns low..high - 1.

    ``order[starts[row]:starts[row + 1]]`` are the columns whose own row this is. Rows before it win ties (the bar is
    the next smaller number), later rows do not (the bar becomes the own score). Returns the first row whose own score
    differs from the announced one, or -1.
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


@kernel
def offer_to_columns(block, other, first, values, rows, beside, low, high):  # type: ignore[no-untyped-def]
    """Put the rows of ``block`` into the columns' running lists, for columns low..high - 1.

    Row r of the block stands at position ``first + r``, and all rows before it were offered. ``values``, ``rows`` and
    ``beside`` are (columns, k): falling scores, the rows that they belong to, and the entries of ``other`` at those
    places.
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


@kernel
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


@kernel
def tau_in_rows(y, order, tied, tau, low, high):  # type: ignore[no-untyped-def]
    """``tau[row]`` = Kendall's tau-b of rows low..high - 1; 0 where x or y is constant.

    x falls along the row, with y rising where x is equal. ``order`` puts y in rising order, and ``tied`` is the count
    of :func:`untie_in_rows`.
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


@kernel
def _inversions(places, seen, in_block, in_blocks):  # type: ignore[no-untyped-def]
    """Number of pairs of a permutation that stand in falling order.

    Places are marked in a bitmap one after the other, after the marks below each were counted: in its word of 64 bits,
    in the earlier words of its block of 64 words, and in the earlier blocks. So a step adds to at most 64 counters,
    which lie side by side, and to one counter per 4096 places.
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
