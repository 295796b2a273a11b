"""Relevant sets as the program of Biten et al. makes them for semantic recall, from captions' lists of images."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rungwise.core.compute import top_columns
from rungwise.metrics._blocks import CheckedDegrees
from rungwise.metrics._rankings import Direction, Positives, positives_of

_BLOCK_VALUES = 1 << 22
"""Number of degrees read at a time."""


def relevant_sets(
    relevance: CheckedDegrees, image_of_caption: NDArray[np.int64], images: int, m: int, length: int, non_gt: bool
) -> dict[Direction, Positives]:
    """Sets of the m images most relevant to all captions of an image, and of the captions of those.

    Each caption lists its ``length`` most relevant images (ties to the lower index). The degrees in the lists of one
    image's captions are added image by image, and the m images with the largest sums are right: for every caption of
    the image these images, for the image itself all their captions.

    Args:
        relevance: Degrees of all images with all captions.
        image_of_caption: (captions,) position of each caption's image.
        images: Number of images.
        m: Largest number of images in a set.
        length: Length of each caption's list.
        non_gt: Whether an image is left out of its own set.

    >>> degrees = np.array([[0.9, 0.8, 0.1], [0.3, 0.1, 0.7], [0.2, 0.4, 0.6]])
    >>> relevance = CheckedDegrees(lambda some, others: degrees[some][:, others], np.arange(3), np.arange(3))
    >>> found = relevant_sets(relevance, np.array([0, 0, 1]), images=3, m=1, length=2, non_gt=True)
    >>> found["t2i"].candidate, found["i2t"].counts
    (array([2, 2, 2]), array([0, 0, 0]))
    """
    captions = len(image_of_caption)
    everyone = np.arange(images)
    step = max(1, _BLOCK_VALUES // max(1, images))
    listed, degrees = [], []
    for start in range(0, captions, step):
        rows = np.ascontiguousarray(relevance.block(everyone, np.arange(start, min(start + step, captions))).T)
        top = top_columns(rows, length)
        listed.append(top)
        degrees.append(np.take_along_axis(rows, top, axis=1).astype(np.float64))
    image = np.concatenate(listed)
    owner = np.repeat(image_of_caption, image.shape[1])
    pair, place = np.unique(owner * images + image.ravel(), return_inverse=True)
    sums = np.bincount(place, weights=np.concatenate(degrees).ravel(), minlength=len(pair))
    owner, chosen = np.divmod(pair, images)
    if non_gt:
        other = owner != chosen
        owner, chosen, sums = owner[other], chosen[other], sums[other]
    order = np.lexsort((chosen, -sums, owner))
    owner, chosen = owner[order], chosen[order]
    first = np.arange(len(owner)) - np.searchsorted(owner, owner) < m
    owner, chosen = owner[first], chosen[first]
    order = np.lexsort((chosen, owner))
    starts = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=images))])
    sets = Positives(starts, chosen[order])
    own = positives_of(image_of_caption, images)["i2t"].select(sets.candidate)
    whose = sets.query[own.query]
    order = np.lexsort((own.candidate, whose))
    counts = np.bincount(whose, minlength=images)
    return {
        "i2t": Positives(np.concatenate([[0], np.cumsum(counts)]), own.candidate[order]),
        "t2i": sets.select(image_of_caption),
    }
