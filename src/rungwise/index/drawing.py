"""Rows that are drawn by the hashes of their ids: the same ones for everybody, whatever the store.

Rows that come and go change what is drawn by no more than themselves.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterable

DRAWS = 1 << 63
"""Draws lie in 0..DRAWS, spread evenly."""


def draw_of(one: str) -> int:
    """What the row with an id has drawn.

    >>> 0 <= draw_of("dog") < DRAWS
    True
    """
    digest = hashlib.blake2b(one.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def least_drawn(ids: Iterable[str], count: int) -> list[str]:
    """The ids with the smallest draws, those first.

    >>> least_drawn(["dog", "cat", "wolf", "owl"], 2) == least_drawn(["owl", "dog", "wolf", "cat"], 2)
    True
    """
    return [one for _, one in heapq.nsmallest(count, ((draw_of(one), one) for one in ids))]
