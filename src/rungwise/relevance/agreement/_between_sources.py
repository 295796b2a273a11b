"""Agreement of two sources on the same pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError, pearson_and_spearman
from rungwise.relevance._base import Degrees, Positions
from rungwise.relevance.combine import common_pairs, pair_degrees
from rungwise.relevance.description.describe import sample

_TOP = 10


@dataclass(frozen=True)
class Agreement:
    """Agreement of two sources on the same pairs.

    Attributes:
        pairs: Number of compared pairs: those of which both sources have a degree.
        annotated: Number of compared pairs of a picture with its own caption; 0 unless these were asked for.
        pearson: Correlation of degrees; NaN where one source is constant.
        spearman: Correlation of ranks.
        top: Mean share of an image's ten best captions (of the compared) that both sources name; NaN without any.
    """

    pairs: int
    annotated: int
    pearson: float
    spearman: float
    top: float

    def __str__(self) -> str:
        own = f", {self.annotated:,} of them a picture with its own caption" if self.annotated else ""
        return (
            f"Pearson {self.pearson:.3f}, Spearman {self.spearman:.3f}, top 10 shared {self.top:.1%}"
            f" ({self.pairs:,} pairs{own})"
        )


def agreement(first: Degrees, second: Degrees, *, annotated: bool = False, pairs: int = 200_000) -> Agreement:
    """Compare two sources of the same images and captions.

    Where a source has degrees of some pairs only, as people's judgements, these pairs are compared, as far as the other
    source knows them too; otherwise a sample of all pairs is.

    Args:
        first: First source.
        second: Second source; a UserError if its shape is another.
        annotated: Compare pairs of a picture with its own caption too.
        pairs: Most pairs to compare, roughly.

    >>> from rungwise.relevance.lexical import CIDErD
    >>> from rungwise.relevance.human import HumanJudgements
    >>> source = CIDErD(["a red dog", "a dog", "a cat", "the dog"], [0, 1, 2, 3])
    >>> people = HumanJudgements([0, 0, 0, 1], [0, 1, 2, 2], [5, 4, 1, 1], (4, 4), image_of_caption=[0, 1, 2, 3])
    >>> print(agreement(source, people, annotated=True))
    Pearson ..., Spearman ..., top 10 shared 100.0% (4 pairs, 1 of them a picture with its own caption)
    """
    if first.shape != second.shape:
        raise UserError(f"sources of shapes {first.shape} and {second.shape} have no pairs in common")
    owning = first if first.image_of_caption is not None else second
    listed = common_pairs((first, second))
    if listed is None:
        seen = sample(owning, pairs=pairs)
        images, captions = (places.ravel() for places in np.meshgrid(seen.images, seen.captions, indexing="ij"))
        left, right = (
            (seen.degrees if source is owning else source.block(seen.images, seen.captions)).ravel().astype(np.float64)
            for source in (first, second)
        )
    else:
        images, captions = _some(listed, pairs).T
        left, right = (pair_degrees(source, images, captions) for source in (first, second))
    owners = owning.image_of_caption
    own = np.zeros(len(images), np.bool_) if owners is None else owners[captions] == images
    compared = ~np.isnan(left) & ~np.isnan(right) & (annotated | ~own)
    left, right = left[compared], right[compared]
    pearson, spearman = pearson_and_spearman(left, right)
    return Agreement(
        pairs=len(left),
        annotated=int(own[compared].sum()),
        pearson=pearson,
        spearman=spearman,
        top=_shared_top(images[compared], left, right),
    )


def _some(listed: Positions, most: int) -> Positions:
    if len(listed) <= most:
        return listed
    return listed[np.sort(np.random.default_rng(0).choice(len(listed), most, replace=False))]


def _shared_top(images: Positions, left: NDArray[np.float64], right: NDArray[np.float64]) -> float:
    """Mean share of the best captions that both sides name, over images; pairs of one image stand together."""
    if not len(images):
        return float("nan")
    shares = []
    for here in np.split(np.arange(len(images)), np.flatnonzero(np.diff(images)) + 1):
        k = min(_TOP, len(here))
        first, second = (np.argsort(-side[here], kind="stable")[:k] for side in (left, right))
        shares.append(len(np.intersect1d(first, second)) / k)
    return float(np.mean(shares))
