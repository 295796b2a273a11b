"""Compiled inner loops of :mod:`rungwise.core.compute._topk`: exact, ties by the lower column."""

from __future__ import annotations

import numpy as np

from rungwise.core.compute._kernels import kernel

_GLANCE = 32
"""Number of scores that are compared with a bar at once; only where one reaches it are they compared singly."""


@kernel
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


@kernel
def count_reaching(scores, bar, counts, low, high):  # type: ignore[no-untyped-def]
    """``counts[row - low]`` = scores that reach the row's bar, in rows low..high - 1."""
    for row in range(low, high):
        line, least = scores[row], bar[row - low]
        count = np.int32(0)
        for each in range(len(line)):
            count = np.int32(count + np.int32(line[each] >= least))
        counts[row - low] = count


@kernel
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


@kernel
def take_in_rows(values, columns, taken, low, high):  # type: ignore[no-untyped-def]
    """``taken[row, place] = values[row, columns[row, place]]`` for rows low..high - 1."""
    for row in range(low, high):
        line, asked, out = values[row], columns[row], taken[row]
        for place in range(len(asked)):
            out[place] = line[asked[place]]


@kernel
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


@kernel
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
