"""Compiled loops over facts of scene graphs, called by :mod:`rungwise.relevance.scene_graph._facts`.

Rows come and go as its ``Sparse``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rungwise.core.compute import kernel


@kernel
def alike_facts(parts: Any, holder_starts: Any, holders: Any, near: Any, least: float, found: Any, fill: bool) -> None:
    """For each fact the facts that it is like: the product of the degrees of its parts is at least ``least``.

    Args:
        parts: (facts, 3) int32 words of each fact, -1 where it is shorter.
        holder_starts: (words + 1,) int64, where the facts begin whose first part is a given word.
        holders: (facts,) int32, facts by their first part.
        near: Rows by word: the words that it is like, itself among them.
        least: The lowest product that counts.
        found: Rows by fact: counts are written into its starts without ``fill``, columns and values with it.
        fill: Write the facts; else count them.
    """
    starts, words, degrees = near.starts, near.columns, near.values
    size = len(starts) - 1
    second = np.zeros(size, np.float32)
    third = np.zeros(size, np.float32)
    for fact in range(len(parts)):
        first, middle, last = parts[fact, 0], parts[fact, 1], parts[fact, 2]
        if middle >= 0:
            for at in range(starts[middle], starts[middle + 1]):
                second[words[at]] = degrees[at]
        if last >= 0:
            for at in range(starts[last], starts[last + 1]):
                third[words[at]] = degrees[at]
        place = found.starts[fact] if fill else 0
        for at in range(starts[first], starts[first + 1]):
            word = words[at]
            for position in range(holder_starts[word], holder_starts[word + 1]):
                other = holders[position]
                if (parts[other, 1] >= 0) != (middle >= 0) or (parts[other, 2] >= 0) != (last >= 0):
                    continue
                degree = degrees[at]
                if middle >= 0:
                    degree *= second[parts[other, 1]]
                if last >= 0:
                    degree *= third[parts[other, 2]]
                if degree >= least:
                    if fill:
                        found.columns[place] = other
                        found.values[place] = degree
                    place += 1
        if not fill:
            found.starts[fact + 1] = place
        if middle >= 0:
            for at in range(starts[middle], starts[middle + 1]):
                second[words[at]] = 0
        if last >= 0:
            for at in range(starts[last], starts[last + 1]):
                third[words[at]] = 0


@kernel
def different_facts(owners: Any, facts: Any, near: Any, different: Any) -> None:
    """Which facts of each set say what no different one before them says; the others only repeat one by synonyms.

    Args:
        owners: (sets + 1,) int64, where the facts of each set begin in ``facts``.
        facts: int32, rising within a set, so that nothing depends on the order of captions.
        near: Rows by fact: the facts that it is like.
        different: (facts,) bool, written.
    """
    starts, others, degrees = near.starts, near.columns, near.values
    said = np.full(len(starts) - 1, -1, np.int64)
    for group in range(len(owners) - 1):
        for place in range(owners[group], owners[group + 1]):
            fact = facts[place]
            different[place] = said[fact] != group
            if said[fact] != group:
                for at in range(starts[fact], starts[fact + 1]):
                    if degrees[at] == 1:
                        said[others[at]] = group


@kernel
def merged_facts(owners: Any, facts: Any, near: Any, merged: Any, fill: bool) -> None:
    """For each set of references the facts that they answer, each with the highest degree that one of theirs gives it.

    Args:
        owners: (sets + 1,) int64, where the facts of each set begin in ``facts``.
        facts: int32, facts of all references.
        near: Rows by fact: the facts that it is like.
        merged: Rows by set: counts are written into its starts without ``fill``, columns and values with it.
        fill: Write the facts; else count them.
    """
    starts, others, degrees = near.starts, near.columns, near.values
    best = np.zeros(len(starts) - 1, np.float32)
    touched = np.empty(len(starts) - 1, np.int32)
    for group in range(len(owners) - 1):
        count = 0
        for place in range(owners[group], owners[group + 1]):
            fact = facts[place]
            for at in range(starts[fact], starts[fact + 1]):
                other = others[at]
                if best[other] == 0:
                    touched[count] = other
                    count += 1
                if degrees[at] > best[other]:
                    best[other] = degrees[at]
        if fill:
            begin = merged.starts[group]
            found = np.sort(touched[:count])
            for at in range(count):
                merged.columns[begin + at] = found[at]
                merged.values[begin + at] = best[found[at]]
        else:
            merged.starts[group + 1] = count
        for at in range(count):
            best[touched[at]] = 0
