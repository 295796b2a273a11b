"""Curves over queries with their bands, and what a random order would give: recall by K, degree by rank.

A band is a 95 % bootstrap interval over images: images are drawn with replacement, together with all their queries,
since the captions of one image are not independent (Davison and Hinkley 1997, section 3.8). Each point has a band of
its own. Where all queries agree, every draw does; a share of 0 or 100 % then has Wilson's interval, which is not empty
(Wilson 1927), with the number of images in the place of the number of trials.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.core import UserError
from rungwise.core.output import short_repr
from rungwise.evaluation.statistics import wilson

Numbers = NDArray[np.float64]

DRAWS = 1000
"""Default number of bootstrap draws."""

_POINTS = 60
_CELLS = 1 << 22
"""Number of values (draws x images, queries x points) held in memory at a time."""


@dataclass(frozen=True)
class MeanCurve:
    """Points of a curve, with a band, and the same curve of a random order.

    Attributes:
        x: (points,) rising positions, such as K.
        value: (points,) means over queries.
        low: (points,) lower ends of the 95 % band.
        high: (points,) upper ends of the 95 % band.
        chance: (points,) what a random order gives on average; empty where that is not known.
        ideal: (points,) what the best order gives; empty where that is not known.
    """

    x: Numbers
    value: Numbers
    low: Numbers
    high: Numbers
    chance: Numbers
    ideal: Numbers

    __repr__ = short_repr


def mean_curve(
    x: ArrayLike,
    values: ArrayLike,
    image_of_query: ArrayLike,
    *,
    chance: ArrayLike = (),
    ideal: ArrayLike = (),
    draws: int = DRAWS,
    seed: int = 0,
) -> MeanCurve:
    """Means over queries of a row of values each, with a band at every point.

    Args:
        x: (points,) rising positions.
        values: (queries, points) values; a query with a NaN is left out.
        image_of_query: (queries,) number of the image that each query is, or was written for.
        chance: (points,) or one number: what a random order gives.
        ideal: (points,) or one number: what the best order gives.
        draws: Number of bootstrap draws.
        seed: Seed of the draws.

    Raises:
        UserError: If sizes do not agree, no query has values, or ``draws`` is not positive.

    >>> curve = mean_curve([1, 2], [[0.0, 1.0], [1.0, 1.0]], [0, 1], chance=0.5)
    >>> curve.value.tolist(), curve.low.tolist(), curve.high.tolist(), curve.chance.tolist()
    ([0.5, 1.0], [0.0, 1.0], [1.0, 1.0], [0.5, 0.5])
    """
    places, rows = np.asarray(x, dtype=np.float64), np.asarray(values, dtype=np.float64)
    owners = np.asarray(image_of_query)
    if rows.ndim != 2 or rows.shape[1:] != places.shape or owners.shape != rows.shape[:1]:
        raise UserError(
            f"a curve of {len(places)} points has values of shape (queries, {len(places)}) and an image for each"
            f" query; got {rows.shape} and {owners.shape}"
        )
    if draws < 1:
        raise UserError(f"draws must be at least 1, got {draws}")
    known = ~np.isnan(rows).any(axis=1)
    if not known.any():
        raise UserError("no query has values at all points of the curve, so there is no mean; leave the curve out")
    low, high = _band(rows[known], owners[known], draws, seed)
    return MeanCurve(places, rows[known].mean(axis=0), low, high, _of_points(chance, places), _of_points(ideal, places))


def recall_curve(
    best_ranks: ArrayLike,
    image_of_query: ArrayLike,
    gallery: int,
    positives_per_query: ArrayLike,
    *,
    depth: int | None = None,
    draws: int = DRAWS,
    seed: int = 0,
) -> MeanCurve:
    """R@K by K: the percentage of queries with a right candidate among the first K, beside that of a random order.

    Args:
        best_ranks: (queries,) rank of the best right candidate, from 1; inf where none is listed, NaN where there is
            none, which leaves the query out.
        image_of_query: (queries,) number of the image that each query is, or was written for.
        gallery: Number of candidates.
        positives_per_query: (queries,) number of right candidates.
        depth: Largest K of the curve; None for the whole gallery.
        draws: Number of bootstrap draws.
        seed: Seed of the draws.

    Raises:
        UserError: If sizes do not agree, or no query has a right candidate.

    >>> curve = recall_curve([1, 3], [0, 1], 3, [1, 1])
    >>> curve.x.tolist(), curve.value.tolist(), curve.chance.round(1).tolist()
    ([1.0, 2.0, 3.0], [50.0, 50.0, 100.0], [33.3, 66.7, 100.0])
    """
    ranks, owners = np.asarray(best_ranks, dtype=np.float64), np.asarray(image_of_query)
    right = np.asarray(positives_per_query, dtype=np.int64)
    if not ranks.shape == owners.shape == right.shape or ranks.ndim != 1:
        raise UserError(
            f"a recall curve takes a rank, an image and a count for each query; got {ranks.shape}, {owners.shape} and"
            f" {right.shape}"
        )
    known = ~np.isnan(ranks) & (right > 0)
    steps = steps_of(gallery if depth is None else min(depth, gallery))
    hits = 100.0 * (ranks[known, None] <= steps)
    chance = 100.0 * random_recall(gallery, right[known], steps)
    curve = mean_curve(steps, hits, owners[known], chance=chance, draws=draws, seed=seed)
    images = len(np.unique(owners[known]))
    for at in np.flatnonzero(curve.low == curve.high):  # all queries agree, and so do all draws
        curve.low[at], curve.high[at] = (100 * bound for bound in wilson(curve.value[at] / 100, images))
    return curve


def random_recall(gallery: int, positives: ArrayLike, steps: ArrayLike) -> Numbers:
    """(steps,) chance that a random order has a right candidate among the first K, averaged over queries.

    Of n candidates, r of them right, the first K hold none with probability C(n - r, K) / C(n, K).

    Args:
        gallery: Number n of candidates.
        positives: (queries,) number r of right candidates.
        steps: (steps,) values of K, of 1 to n.

    >>> random_recall(4, [1, 2], [1, 4]).tolist()
    [0.375, 1.0]
    """
    counts, how_many = np.unique(np.asarray(positives, dtype=np.int64), return_counts=True)
    k = np.asarray(steps, dtype=np.float64)[:, None]
    found = np.zeros(len(k))
    missed, upto = np.ones((len(k), 1)), 0
    for right, queries in zip(counts.tolist(), how_many.tolist(), strict=True):
        for start in range(upto, right, 1 << 14):
            # One right candidate after another is put behind the first K: (n - K - j) / (n - j) of the places are left.
            put = np.arange(start, min(right, start + (1 << 14)))
            missed = missed * np.maximum(0.0, (gallery - k - put) / (gallery - put)).prod(axis=1, keepdims=True)
        upto = right
        found += queries * (1 - missed[:, 0])
    return np.asarray(found / max(1, int(how_many.sum())))


def steps_of(most: int, points: int = _POINTS) -> NDArray[np.int64]:
    """Whole numbers from 1 to ``most``, evenly on a logarithmic scale, each once.

    >>> steps_of(3).tolist(), steps_of(1000, 4).tolist()
    ([1, 2, 3], [1, 10, 100, 1000])
    """
    return np.unique(np.geomspace(1, max(1, most), points).round().astype(np.int64))


def _of_points(given: ArrayLike, x: Numbers) -> Numbers:
    values = np.asarray(given, dtype=np.float64)
    return values if values.size == 0 else np.asarray(np.broadcast_to(values, x.shape))


def _band(rows: Numbers, owners: NDArray[np.int64], draws: int, seed: int) -> tuple[Numbers, Numbers]:
    """2.5 and 97.5 % quantiles of the means when images are drawn with replacement."""
    images, own = np.unique(owners, return_inverse=True)
    sums = np.zeros((len(images), rows.shape[1]))
    np.add.at(sums, own, rows)
    counts = np.bincount(own, minlength=len(images)).astype(np.float64)
    generator = np.random.default_rng(seed)
    means = np.empty((draws, rows.shape[1]))
    step = max(1, _CELLS // len(images))
    for start in range(0, draws, step):
        some = min(step, draws - start)
        chosen = generator.integers(0, len(images), (some, len(images))) + len(images) * np.arange(some)[:, None]
        weights = np.bincount(chosen.ravel(), minlength=some * len(images)).reshape(some, -1).astype(np.float64)
        means[start : start + some] = (weights @ sums) / (weights @ counts)[:, None]
    low, high = np.quantile(means, [0.025, 0.975], axis=0)
    same = (rows == rows[0]).all(axis=0)  # sums of the same numbers round
    exact = rows.mean(axis=0)
    return np.where(same, exact, low), np.where(same, exact, high)
