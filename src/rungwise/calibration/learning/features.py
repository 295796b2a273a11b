"""What is said of a hit and of its query, in numbers that mean the same for every query and every collection.

Positions in the query's own null distribution carry over to other queries and other collections. What is said of the
best hits is said of shares of the index, such as its best hundredth, so that it carries over to other sizes, too. The
columns ``centre``, ``spread`` and ``best_ten_above`` are in the units of the model's scores: they carry over to other
collections of the same model, and a calibration is of one model. What is not known is NaN.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from rungwise.calibration.judgement import Known, Values
from rungwise.calibration.null_distribution import Null

DEPTH, _DEEPEST, _DEPTH_SHARE = 200, 1000, 0.1
"""Hits that features are made of: a tenth of the index, within these bounds; those after them are judged by their
position alone."""

CAPTIONED = 50
"""Hits whose caption scores are read; a search need not look up those of more."""

QUERY_NAMES = (
    "best",
    "best_ten",
    "best_hundred",
    "centre",
    "spread",
    "best_ten_above",
    "unknown_share",
    "log_rate",
    "caption_best_ten",
)
"""Columns of a query.

``best``, ``best_ten``, ``best_hundred``: mean excess of the best hit, the best ten and the best hundred of a thousand
candidates, and of as many for each thousand of a larger index. The excess is the position of a hit less that of the
same rank in a normal distribution of as many candidates. ``centre``, ``spread``: of the scores, as
:class:`rungwise.calibration.null_distribution.Null` has them. ``best_ten_above``: how high the best ten would stand
over the centre among 1,000 candidates, in units of the scores. ``unknown_share``: see
:class:`rungwise.calibration.Known`. ``log_rate``: logarithm of the share of relevant candidates that the query's vector
lets expect. ``caption_best_ten``: mean of the ten best caption scores of the hits.
"""

HIT_NAMES = ("position", "below_best", "log_rank", "density", "caption", "caption_z", "caption_rank")
"""Columns of a hit; in the table of hits, those of the query follow them.

``position``: score over the centre, in standard deviations as the scores below the centre show them, which relevant
candidates do not widen. ``below_best``: ``best`` less its own excess. ``log_rank``: logarithm of (rank /
candidates). ``density``: its excess less that of the tenth after it, of each thousand. ``caption``: the caption score
of :class:`rungwise.calibration.Known`. ``caption_z``: the same, less the mean of the hits that have one, in their
standard deviations. ``caption_rank``: logarithm of the rank by caption score among them.
"""

NAMES = HIT_NAMES + QUERY_NAMES

RISING = ("position", "caption", "caption_z")
"""Columns in which a degree must not fall while the others stay."""

_BY_SCORES = ("position", "below_best", "log_rank", "density", "best", "best_ten", "best_hundred", "centre", "spread")

VIEWS = (
    (*_BY_SCORES, "log_rate", "caption", "caption_z", "caption_rank", "caption_best_ten"),
    (*_BY_SCORES, "caption", "caption_z", "caption_rank", "caption_best_ten"),
    (*_BY_SCORES, "log_rate"),
    _BY_SCORES,
)
"""Columns that a regression of hits reads, by what is known; the richest first."""

_OF_QUERY = QUERY_NAMES[:6]

QUERY_VIEWS = tuple(
    (*_OF_QUERY, *words, *rest)
    for words in (("unknown_share",), ())
    for rest in (("log_rate", "caption_best_ten"), ("caption_best_ten",), ("log_rate",), ())
)
"""Columns that a belief in a query reads, likewise; those of the scores are in each."""

QUERY_RISING = ("best", "best_ten", "best_hundred", "best_ten_above", "log_rate", "caption_best_ten")
"""Columns of a query in which the belief that anything is relevant must not fall while the others stay."""

_BEST, _TEN, _HUNDRED = 1, 10, 100
"""Candidates of an index of up to :data:`_THOUSAND`, and of each thousand of a larger one."""
_THOUSAND = 1000
_USUAL_TEN = 2.66
"""Mean position of the best ten of 1,000 candidates in a normal distribution."""

_LEAST_SPREAD = 1e-6


def query_features(falling: Values, null: Null, known: Known | None = None, log_rate: float = np.nan) -> Values:
    """What is said of a query by its best hits.

    Args:
        falling: (hits,) scores of the best hits, falling; the first :func:`depth_of` count.
        null: Of the query.
        known: Of the query and these hits, if anything is.
        log_rate: As the query's vector lets expect it, if it is known.

    Returns:
        (len(QUERY_NAMES),); NaN for what is not known.

    >>> from rungwise.calibration import Background
    >>> scores = np.sort(np.random.default_rng(0).normal(size=1000))[::-1]
    >>> null = Null.of(Background(scores, 1000))
    >>> dict(zip(QUERY_NAMES, query_features(scores[:50], null).round(1).tolist()))["best"]
    0.2
    """
    falling = falling[: depth_of(null.total)]
    return _of_query(_Excess.of(falling, null), null, known, _captions(known, len(falling)), log_rate)


def hit_features(
    falling: Values, null: Null, known: Known | None = None, log_rate: float = np.nan
) -> tuple[Values, Values]:
    """What is said of the best hits of a query, and of the query.

    Args:
        falling: (hits,) scores of the best hits, falling; the first :func:`depth_of` count.
        null: Of the query.
        known: Of the query and these hits, if anything is.
        log_rate: As the query's vector lets expect it, if it is known.

    Returns:
        (hits, len(NAMES)), whose last columns repeat the second: (len(QUERY_NAMES),) as of :func:`query_features`.

    >>> from rungwise.calibration import Background
    >>> scores = np.sort(np.random.default_rng(0).normal(size=1000))[::-1]
    >>> hit_features(scores, Null.of(Background(scores, 1000)))[0].shape == (200, len(NAMES))
    True
    """
    falling = falling[: depth_of(null.total)]
    hits = len(falling)
    positions = null.low_positions(falling)
    captions = _captions(known, hits)
    excess = _Excess.of(falling, null)
    of_query = _of_query(excess, null, known, captions, log_rate)
    features = np.full((hits, len(NAMES)), np.nan)
    features[:, 0] = positions
    features[:, 1] = of_query[0] - excess.hits
    features[:, 2] = _log_ranks(hits) - np.log(null.total)
    features[:, 3] = excess.hits - excess.later(_TEN)
    if captions is not None:
        has_one = np.flatnonzero(~np.isnan(captions))
        some = captions[has_one]
        features[:, 4] = captions
        features[has_one, 5] = (some - some.mean()) / max(float(some.std()), _LEAST_SPREAD)
        features[has_one[np.argsort(-some, kind="stable")], 6] = _log_ranks(len(some))
    features[:, len(HIT_NAMES) :] = of_query
    return features, of_query


def depth_of(total: int) -> int:
    """How many of the best hits features are made of, in an index of this size.

    >>> depth_of(500), depth_of(5000), depth_of(100_000)
    (200, 500, 1000)
    """
    return min(_DEEPEST, max(DEPTH, int(_DEPTH_SHARE * total)))


@dataclass(frozen=True)
class _Excess:
    """How much higher candidates stand than those of the same rank in a normal distribution.

    Attributes:
        hits: (hits,) of the best.
        upper: The same of the upper tenth of a sample of the index, for shares that go beyond the hits.
        total: Candidates of the index.
        sampled: Candidates of the sample.
    """

    hits: Values
    upper: Values
    total: int
    sampled: int

    @property
    def _upper_goes_on(self) -> bool:
        """Whether the sample tells of candidates after the hits, as it does of a large index."""
        return len(self.upper) * self.total > len(self.hits) * self.sampled

    @property
    def _thousands(self) -> float:
        """Of the candidates; a smaller index counts as one."""
        return max(1.0, self.total / _THOUSAND)

    @classmethod
    def of(cls, falling: Values, null: Null) -> _Excess:
        hits = null.low_positions(falling) - _expected_positions(len(falling), null.total)
        upper = null.low_positions(null.upper) - _expected_positions(len(null.upper), null.sampled)
        return cls(hits, upper, null.total, null.sampled)

    def mean(self, count: int) -> float:
        """Of so many of the best candidates of each thousand."""
        count = round(count * self._thousands)
        if count <= len(self.hits) or not self._upper_goes_on:
            return float(self.hits[:count].mean())
        return float(self.upper[: max(1, round(count * self.sampled / self.total))].mean())

    def later(self, count: int) -> Values:
        """(hits,) of the candidate that stands so many of each thousand after each hit."""
        places = np.arange(len(self.hits)) + round(count * self._thousands)
        later = self.hits[np.minimum(places, len(self.hits) - 1)]
        beyond = places >= len(self.hits)
        if self._upper_goes_on:
            in_sample = ((places[beyond] + 0.5) * (self.sampled / self.total)).astype(np.int64)
            later[beyond] = self.upper[np.minimum(in_sample, len(self.upper) - 1)]
        return later


def _of_query(excess: _Excess, null: Null, known: Known | None, captions: Values | None, log_rate: float) -> Values:
    unknown = known.unknown_share if known is not None else None
    return np.array(
        [
            excess.mean(_BEST),
            excess.mean(_TEN),
            excess.mean(_HUNDRED),
            null.centre,
            null.low_spread,
            (excess.mean(_TEN) + _USUAL_TEN) * null.low_spread,
            np.nan if unknown is None else unknown,
            log_rate,
            np.nan if captions is None else np.sort(captions[~np.isnan(captions)])[-_TEN:].mean(),
        ]
    )


def _captions(known: Known | None, hits: int) -> Values | None:
    """(hits,) caption scores, NaN without a caption and after the first :data:`CAPTIONED`; None if there are none."""
    if known is None or known.caption_scores is None:
        return None
    scores = np.full(hits, np.nan)
    read = known.caption_scores[: min(hits, CAPTIONED)]
    scores[: len(read)] = read
    return None if np.isnan(scores).all() else scores


@lru_cache(maxsize=64)
def _expected_positions(hits: int, total: int) -> Values:
    """(hits,) where the best of so many candidates stand in a normal distribution."""
    from scipy.special import ndtri

    return np.asarray(-ndtri((np.arange(1, hits + 1) - 0.5) / total))


@lru_cache(maxsize=64)
def _log_ranks(hits: int) -> Values:
    """Logarithms of ranks from 1."""
    return np.log(np.arange(1, hits + 1))
