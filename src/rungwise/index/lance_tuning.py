"""When LanceDB should compare every row and when it should take its approximate index, and how that is set."""

from __future__ import annotations

from dataclasses import dataclass

from rungwise.core.configuration import STRICT, check_size

PAYS_FROM_BYTES = 50_000_000
"""From so many bytes of vectors on an approximate index is made: 25,000 of 512 numbers.

On two cores comparing them all takes about 8 ms, and a search through the index 4 ms, at a million rows hardly more.
"""

SCALARS_PAY_FROM = 10_000
"""From so many rows on, ids and filtered columns are indexed too: below, looking through them takes a millisecond."""


@dataclass(frozen=True)
class Approximation:
    """How hard an approximate index looks.

    Attributes:
        probes: How many of its partitions it looks into; there is one for each million rows.
        ef: How many candidates the walk through the graph of near neighbours keeps (HNSW, section 4).
        refine: So many times k candidates are compared by their full vectors.
        flat: Where a filter lets through no more rows than this, they are all compared.

    >>> Approximation(ef=128).refine
    4
    """

    __pydantic_config__ = STRICT

    probes: int = 4
    ef: int = 100
    refine: int = 4
    flat: int = 10_000

    def __post_init__(self) -> None:
        for name in ("probes", "ef", "refine", "flat"):
            check_size(name, getattr(self, name), most=1 << 30)
