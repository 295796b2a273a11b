"""When LanceDB should compare every row and when it should take its approximate index, and how that is set."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import Field

from rungwise.core.configuration import STRICT, Bounded

HELD_BYTES = 256_000_000
"""Up to so many bytes of vectors in single precision are held in memory, where all are compared.

That is 125,000 vectors of 512 numbers, which takes about 8 ms on two cores, and less under a filter. Reading them from
the table for each search takes more than ten times as long.
"""

PAYS_FROM_BYTES = HELD_BYTES
"""From so many bytes on, an approximate index is made: it answers in about 5 ms, at a million rows hardly slower."""

GRAPH_UP_TO_ROWS = 300_000
"""Up to so many rows the approximate index is a graph (IVF_HNSW_SQ); of more rows it would take too long to make.

On two cores the graph took 117 s for 100,000 vectors of 512 numbers, and takes more than ten times that for a million.
Codes of one bit a number (IVF_RQ) took 82 s of processor time for a million.
"""

_ROWS_OF_PARTITION = 1000
_LEAST_PROBES = 32
_EF = (16, 32, 64, 100, 150, 250, 400)

SCALARS_PAY_FROM = 10_000
"""From so many rows on, ids and filtered columns are indexed too: below, looking through them takes a millisecond."""

_Count = Annotated[int, Field(ge=1, le=1 << 30)]


@dataclass(frozen=True)
class Approximation(Bounded):
    """How hard an approximate index looks.

    Attributes:
        probes: How many of its partitions it looks into. A graph has one for each million rows; codes have one for each
            thousand, of which more are looked into under a filter, the fewer rows pass it.
        ef: Of a graph: how many candidates the walk keeps (HNSW, section 4).
        refine: So many times k candidates are compared by their full vectors.
        flat: Where a filter lets through no more rows than this, they are all compared.

    >>> Approximation(ef=128).refine
    4
    """

    __pydantic_config__ = STRICT

    probes: _Count = 4
    ef: _Count = 100
    refine: _Count = 4
    flat: _Count = 10_000


def partitions_of(rows: int) -> int:
    """Into how many partitions codes are parted.

    >>> partitions_of(1_000_000)
    1000
    """
    return max(1, rows // _ROWS_OF_PARTITION)


def usual(rows: int, *, graph: bool) -> Approximation:
    """The setting of an index for which none was chosen.

    Args:
        rows: How many there are.
        graph: Whether it is a graph.

    >>> usual(1_000_000, graph=False).probes
    100
    """
    if graph:
        return Approximation()
    return Approximation(probes=max(_LEAST_PROBES, partitions_of(rows) // 10), refine=20, flat=1000)


def alternatives(present: Approximation, rows: int, *, graph: bool) -> tuple[Approximation, ...]:
    """The settings that are worth trying, the present one first.

    Args:
        present: The setting now.
        rows: How many there are.
        graph: Whether the index is a graph.

    >>> len(alternatives(Approximation(), 100_000, graph=True)), len(alternatives(Approximation(), 10**6, graph=False))
    (28, 25)
    """
    if graph:
        others = [replace(present, ef=ef, refine=refine) for ef in _EF for refine in (1, 2, 4, 8)]
    else:
        probes = [max(1, partitions_of(rows) // part) for part in (64, 32, 16, 8, 4, 1)]
        others = [replace(present, probes=one, refine=refine) for one in probes for refine in (5, 10, 20, 40)]
    return tuple(dict.fromkeys((present, *others)))
