"""Settings of LanceDB's approximate index, and when every row is compared instead."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from pydantic import Field

from rungwise.core import STRICT, Bounded

HELD_BYTES = 256_000_000
"""Bytes of vectors in single precision up to which they are held in memory, where all are compared.

That is 125,000 vectors of 512 numbers, which takes about 8 ms on two cores, and less under a filter. Reading them from
the table for each search takes more than ten times as long.
"""

MAPPED_FROM_ROWS = 100
"""Rows from which on a table in a folder has mapped files; of fewer, the engine hands out soon what is asked for."""

LISTS_PAY_FROM_BYTES = 64_000_000
"""Bytes of vectors in single precision from which on a table in a folder has inverted lists.

That is 31,000 vectors of 512 numbers, all of which are compared in about 3 ms.
"""

PAYS_FROM_BYTES = HELD_BYTES
"""Bytes from which on a table in an object store has an approximate index of LanceDB's."""

GRAPH_UP_TO_ROWS = 300_000
"""Rows up to which that is a graph (IVF_HNSW_SQ); of more rows it would take too long to make.

On two cores the graph took 117 s for 100,000 vectors of 512 numbers, and takes more than ten times that for a million.
Codes of one bit a number (IVF_RQ) took 82 s of processor time for a million.
"""

IndexKind = Literal["lists", "graph", "codes"]
"""Kind of an approximate index: inverted lists in files beside a table, or LanceDB's graph or codes."""

_ROWS_OF_PARTITION = 1000
_LEAST_PROBES = 32
_EF = (16, 32, 64, 100, 150, 250, 400)
_PROBES = (8, 16, 32, 64, 128, 256, 512)

SCALARS_PAY_FROM = 10_000
"""Rows from which on ids and filtered columns are indexed too: looking through fewer takes a millisecond."""

_Count = Annotated[int, Field(ge=1, le=1 << 30)]


@dataclass(frozen=True)
class Approximation(Bounded):
    """How thoroughly an approximate index looks.

    Attributes:
        probes: Number of lists or partitions it looks into. Under a filter more lists are looked into, until enough
            hold rows that pass it. A graph has one partition for each million rows; codes have one for each thousand,
            of which more are looked into under a filter, the fewer rows pass it.
        ef: Number of candidates that the walk through a graph keeps (HNSW, section 4).
        refine: Multiple of k candidates that are compared by their full vectors; at most 4,096 of them, or k if more,
            and of lists at most k and 256.
        flat: Number of rows that pass a filter up to which they are all compared. Lists are looked into until they hold
            as many rows that pass.
        kind: Kind of index that the setting is for; an index of another kind takes its default in place of it.
    """

    __pydantic_config__ = STRICT

    probes: _Count = 4
    ef: _Count = 100
    refine: _Count = 4
    flat: _Count = 10_000
    kind: IndexKind = "graph"


def partitions_of(rows: int) -> int:
    """Number of partitions of codes for a number of rows."""
    return max(1, rows // _ROWS_OF_PARTITION)


def usual(rows: int, kind: IndexKind) -> Approximation:
    """The default setting of an approximate index with ``rows`` rows.

    >>> usual(1_000_000, "codes").probes
    100
    """
    if kind == "lists":
        return Approximation(probes=max(32, min(64, math.isqrt(rows) // 8)), flat=4000, kind="lists")
    if kind == "graph":
        return Approximation()
    return Approximation(probes=max(_LEAST_PROBES, partitions_of(rows) // 10), refine=20, flat=1000, kind="codes")


def alternatives(present: Approximation, rows: int) -> tuple[Approximation, ...]:
    """The settings that are worth trying, the present one first, for an approximate index with ``rows`` rows."""
    if present.kind == "graph":
        others = [replace(present, ef=ef, refine=refine) for ef in _EF for refine in (1, 2, 4, 8)]
    elif present.kind == "lists":
        others = [replace(present, probes=probes, refine=refine) for probes in _PROBES for refine in (2, 4, 10)]
    else:
        probes = [max(1, partitions_of(rows) // part) for part in (64, 32, 16, 8, 4, 1)]
        others = [replace(present, probes=one, refine=refine) for one in probes for refine in (5, 10, 20, 40)]
    return tuple(dict.fromkeys((present, *others)))
