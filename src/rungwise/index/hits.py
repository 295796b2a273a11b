"""What a search answers."""

from __future__ import annotations

from dataclasses import dataclass

from rungwise.index.store import Found


@dataclass(frozen=True)
class Hit:
    """A picture that was found: the user's id, and how alike it is.

    >>> Hit("dog-7", score=0.5)
    Hit(id='dog-7', score=0.5)
    """

    id: str
    score: float


@dataclass(frozen=True)
class CaptionHit:
    """A caption that was found, and the ids of the pictures that have it.

    >>> CaptionHit("a dog", score=0.5, ids=("dog-7", "dog-9")).ids
    ('dog-7', 'dog-9')
    """

    text: str
    score: float
    ids: tuple[str, ...]


def hits_of(found: Found) -> list[list[Hit]]:
    """What a store of pictures found for several queries, best first.

    >>> import numpy as np
    >>> hits_of(Found((("dog-7",),), (np.array([0.5], np.float32),)))
    [[Hit(id='dog-7', score=0.5)]]
    """
    return [
        [Hit(one, score) for one, score in zip(ids, scores.tolist(), strict=True)]
        for ids, scores in zip(found.ids, found.scores, strict=True)
    ]
