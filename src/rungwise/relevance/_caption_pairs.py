"""Degrees of captions with captions, as a training batch needs them.

In a batch every image comes with one caption, t_q, which stands for it: R(t_q, t_p) is the degree of caption t_p for
the query's image (ladder loss, Zhou et al. 2020). ``pair_block(batch, batch)`` gives these degrees for the captions of
a batch. A source by image answers something else: it compares t_p with all captions of the image, or with its first.
"""

from __future__ import annotations

from typing import Protocol, TypeGuard, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.core import UserError
from rungwise.relevance._base import Degrees


@runtime_checkable
class CaptionPairs(Protocol):
    """A source that answers by caption pair; ask :func:`answers_caption_pairs` whether one does."""

    def pair_block(self, first: ArrayLike, second: ArrayLike) -> NDArray[np.float32]:
        """(len(first), len(second)) float32 degrees of candidate caption ``second[b]`` for query ``first[a]``."""
        ...


def answers_caption_pairs(source: object) -> TypeGuard[CaptionPairs]:
    """Whether a source gives degrees by caption pair; a combination does if all its sources do."""
    return isinstance(source, CaptionPairs) and getattr(source, "of_caption_pairs", True)


def caption_pairs(source: object) -> CaptionPairs:
    """The source itself, if it answers by caption pair; else a UserError that says which sources do."""
    if answers_caption_pairs(source):
        return source
    for part in getattr(source, "sources", ()):
        caption_pairs(part)
    name = source.title().partition(",")[0] if isinstance(source, Degrees) else type(source).__name__
    raise UserError(
        f"{name}: has no degrees of captions with captions; tfidf, cbow, spice, bi-encoder, cross-encoder,"
        " cascade and combinations of these have them, when they are built and not read from a folder; take one of"
        " these, or ask for degrees by image"
    )


def caption_positions(
    first: ArrayLike, second: ArrayLike, captions: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Positions as arrays; a UserError if one is negative or not below ``captions``, the number of captions.

    A negative position would count from the end and give the degrees of other captions.
    """
    arrays = np.asarray(first, np.int64), np.asarray(second, np.int64)
    for asked in arrays:
        if asked.size and not 0 <= asked.min() <= asked.max() < captions:
            raise UserError(
                f"relevance: caption positions run {asked.min()}..{asked.max()}; they must lie in 0..{captions - 1}"
            )
    return arrays
