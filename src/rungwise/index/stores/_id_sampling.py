"""Rows that are drawn by the hashes of their ids: the same ones for everybody, whatever the store.

Rows that come and go change what is drawn by no more than themselves.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterable

DRAWS = 1 << 63
"""Upper bound of the keys, which are spread evenly over 0..DRAWS."""


def sample_key(one: str) -> int:
    """Key of an id, by which rows are drawn."""
    digest = hashlib.blake2b(one.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def smallest_keys(ids: Iterable[str], count: int) -> list[str]:
    """The ``count`` ids with the smallest keys, those first.

    >>> smallest_keys(["dog", "cat", "wolf", "owl"], 2) == smallest_keys(["owl", "dog", "wolf", "cat"], 2)
    True
    """
    return [one for _, one in heapq.nsmallest(count, ((sample_key(one), one) for one in ids))]
