"""What is said of a hit and of its query, in numbers that mean the same for every query and every collection.

Positions in the query's own null distribution carry over to other queries, other collections and other sizes of an
index. Three columns are in the units of the model's scores: they carry over to other collections of the same model, and
a calibration is of one model. What is not known is NaN.
"""

from __future__ import annotations

import numpy as np

from rungwise.calibration.discovery import false_discovery_rates
from rungwise.calibration.judgement import Known, Values
from rungwise.calibration.null import Null

DEPTH = 200
"""Hits that features are made of; those after them are judged by their position alone."""

BEST = 10
"""Hits that count as the best of a query."""

QUERY_NAMES = (
    "best_position",
    "best_ten_position",
    "least_expected_false",
    "spread",
    "best_ten_above_centre",
    "best_above_centre",
    "tail_share",
    "unknown_share",
    "nearest_caption",
)
"""Columns of :func:`query_features`.

``best_position``, ``best_ten_position``: of the best hit, and the mean of the best ten, in the null.
``least_expected_false``: common logarithm of the least of (expected false hits / rank). ``spread``: of the null.
``best_ten_above_centre``, ``best_above_centre``: mean score of the best ten, and the best, over the null's centre, in
units of the scores. ``tail_share``: of candidates in the upper tail, beyond what the null has there.
``unknown_share``, ``nearest_caption``: see :class:`rungwise.calibration.Known`.
"""

HIT_NAMES = (
    "position",
    "log_tail",
    "log_expected_false",
    "log_false_share",
    "false_discovery_rate",
    "log_rank",
    "below_best",
    "above_next",
    "density",
    "above_centre",
    "caption_score",
    "caption_score_below_best",
    "hubness",
)
"""Columns of :func:`hit_features` that differ from hit to hit; those of the query follow them.

``position``: in the null, in standard deviations. ``log_tail``: minus the common logarithm of the probability of such a
position in the null. ``log_expected_false``: common logarithm of how many irrelevant candidates stand as high.
``log_false_share``: that over the rank. ``false_discovery_rate``: local. ``log_rank``: from 0. ``below_best``: distance
to the best hit, in standard deviations. ``above_next``: to the tenth hit after it. ``density``: hits per standard
deviation around it, logarithm. ``above_centre``: score over the null's centre, in units of the scores.
``caption_score``, ``hubness``: see :class:`rungwise.calibration.Known`; ``caption_score_below_best``: under the best
caption score of all hits.
"""

NAMES = HIT_NAMES + QUERY_NAMES

RISING = ("position", "log_tail", "above_centre", "caption_score")
"""Columns in which a degree must not fall while the others stay."""

_AROUND = 5
_LEAST_GAP = 1e-3
_LEAST_LOG = -12.0


def query_features(falling: Values, null: Null, known: Known | None = None) -> Values:
    """What is said of a query by its best hits.

    Args:
        falling: (hits,) scores of the best hits, falling; the first :data:`DEPTH` count.
        null: Of the query.
        known: Of the query, if anything is.

    Returns:
        (len(QUERY_NAMES),).

    >>> from rungwise.calibration import Background
    >>> scores = np.sort(np.random.default_rng(0).normal(size=1000))[::-1]
    >>> null = Null.of(Background(scores, 1000))
    >>> dict(zip(QUERY_NAMES, query_features(scores[:50], null).round(1).tolist()))["best_position"]
    3.1
    """
    falling = falling[:DEPTH]
    positions = null.positions(falling)
    return _of_query(falling, positions, null.expected_false(positions), null, known)


def hit_features(falling: Values, null: Null, known: Known | None = None) -> tuple[Values, Values]:
    """What is said of the best hits of a query, and of the query.

    Args:
        falling: (hits,) scores of the best hits, falling; the first :data:`DEPTH` count.
        null: Of the query.
        known: Of the query and these hits, if anything is.

    Returns:
        (hits, len(NAMES)), whose last columns repeat the second: (len(QUERY_NAMES),) as of :func:`query_features`.

    >>> from rungwise.calibration import Background
    >>> scores = np.sort(np.random.default_rng(0).normal(size=1000))[::-1]
    >>> hit_features(scores, Null.of(Background(scores, 1000)))[0].shape
    (200, 22)
    """
    falling = falling[:DEPTH]
    hits = len(falling)
    positions = null.positions(falling)
    log_tails = null.log_tails(positions) / np.log(10)
    expected = null.irrelevant * 10**log_tails
    log_expected = np.log10(max(null.irrelevant, 1.0)) + log_tails
    ranks = np.arange(1, hits + 1)
    of_query = _of_query(falling, positions, expected, null, known)

    features = np.empty((hits, len(NAMES)))
    features[:, 0] = positions
    features[:, 1] = -log_tails
    features[:, 2] = np.maximum(log_expected, _LEAST_LOG)
    features[:, 3] = np.maximum(log_expected - np.log10(ranks), _LEAST_LOG)
    features[:, 4] = false_discovery_rates(expected)
    features[:, 5] = np.log10(ranks)
    features[:, 6] = positions[0] - positions
    features[:, 7] = positions - positions[np.minimum(ranks - 1 + BEST, hits - 1)]
    first, last = np.maximum(ranks - 1 - _AROUND, 0), np.minimum(ranks - 1 + _AROUND, hits - 1)
    features[:, 8] = np.log10((last - first + 1) / (positions[first] - positions[last] + _LEAST_GAP))
    features[:, 9] = falling - null.centre
    features[:, 10:13] = _of_known_hits(known, hits)
    features[:, len(HIT_NAMES) :] = of_query
    return features, of_query


def _of_query(falling: Values, positions: Values, expected: Values, null: Null, known: Known | None) -> Values:
    least = np.min(expected / np.arange(1, len(expected) + 1))
    unknown = known.unknown_share if known is not None else None
    nearest = known.nearest_caption if known is not None else None
    return np.array(
        [
            positions[0],
            positions[:BEST].mean(),
            max(float(np.log10(max(least, 1e-300))), _LEAST_LOG),
            null.spread,
            falling[:BEST].mean() - null.centre,
            falling[0] - null.centre,
            1 - null.irrelevant / null.total,
            np.nan if unknown is None else unknown,
            np.nan if nearest is None else nearest,
        ]
    )


def _of_known_hits(known: Known | None, hits: int) -> Values:
    """(hits, 3): caption score, the same below the best of all hits, hubness."""
    columns = np.full((hits, 3), np.nan)
    if known is not None and known.caption_scores is not None:
        columns[:, 0] = known.caption_scores[:hits]
        if not np.isnan(columns[:, 0]).all():
            columns[:, 1] = np.nanmax(columns[:, 0]) - columns[:, 0]
    if known is not None and known.hubness is not None:
        columns[:, 2] = known.hubness[:hits]
    return columns
