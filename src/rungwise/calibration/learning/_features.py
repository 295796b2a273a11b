"""Features of a hit and of its query: numbers that mean the same for every query and every collection.

Positions in the query's own null distribution carry over to other queries and collections. Features of the best hits
refer to shares of the index, such as its best hundredth, so that they carry over to other sizes. The columns
``centre``, ``spread`` and ``best_ten_above`` are in the units of the model's scores: they carry over to other
collections of the same model, and a calibration is for one model. NaN stands for unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from rungwise.calibration._judgement import Known, Values
from rungwise.calibration._null_distribution import Null

DEPTH, _DEEPEST, _DEPTH_SHARE = 200, 1000, 0.1
"""Number of hits with features: a tenth of the index, within these bounds; most later ones are judged by position."""

CAPTIONED = 250
"""Number of best hits whose texts are read: all that a search judges at first. Later ones count as unknown."""

STATING = 50
"""Number of later hits with features, whose texts state all words of the query; a search finds them by their words."""

QUERY_NAMES = (
    "best",
    "best_ten",
    "best_hundred",
    "centre",
    "spread",
    "best_ten_above",
    "unknown_share",
    "log_rate",
    "log_words",
    "log_bearers",
    "caption_best_ten",
    "stated_best_ten",
)
"""Columns of features of a query.

``best``, ``best_ten``, ``best_hundred``: mean excess of the best hit, the best ten and the best hundred of a thousand
candidates, and of as many for each thousand of a larger index. The excess is the position of a hit less that of the
same rank in a normal distribution of as many candidates. ``centre``, ``spread``: those of
:class:`rungwise.calibration._null_distribution.Null`. ``best_ten_above``: how high the best ten would stand over the
centre among 1,000 candidates, in units of the scores. ``unknown_share``: that of :class:`rungwise.calibration.Known`.
``log_rate``: logarithm of the share of relevant candidates that the query's vector suggests. ``log_words``: logarithm
of the number of the query's words. ``log_bearers``: logarithm of the share of captions of the index that hold all of
them. ``caption_best_ten``, ``stated_best_ten``: means of the ten best caption scores of the hits, and of the ten
highest shares of words that their texts state.
"""

HIT_NAMES = (
    "position",
    "below_best",
    "log_rank",
    "density",
    "caption",
    "caption_z",
    "caption_rank",
    "stated",
    "log_texts",
)
"""Columns of features of a hit; in the table of hits, those of the query follow them.

``position``: score over the centre, in standard deviations as the scores below the centre show them, which relevant
candidates do not widen. ``below_best``: ``best`` less its own excess. ``log_rank``: logarithm of (rank / candidates).
``density``: its excess less that of the tenth after it, of each thousand. ``caption``: the caption score of
:class:`rungwise.calibration.Known`. ``caption_z``: the caption score less the mean of the hits that have one, in their
standard deviations. ``caption_rank``: logarithm of the rank by caption score among them. ``stated``: the share of the
query's words that the texts of the hit state, as in :class:`rungwise.calibration.Known`. ``log_texts``: logarithm of
one more than their number.
"""

NAMES = HIT_NAMES + QUERY_NAMES

RISING = ("position", "caption", "caption_z", "stated")
"""Columns in which a degree must not fall while the others are fixed."""

_BY_SCORES = ("position", "below_best", "log_rank", "density", "best", "best_ten", "best_hundred", "centre", "spread")
_BY_TEXTS = (
    "caption",
    "caption_z",
    "caption_rank",
    "stated",
    "log_texts",
    "log_bearers",
    "caption_best_ten",
    "stated_best_ten",
)
"""Columns that the captions and columns of the hits give."""

VIEWS = (
    (*_BY_SCORES, "log_rate", "log_words", *_BY_TEXTS),
    (*_BY_SCORES, "log_rate", "log_words"),
    _BY_SCORES,
)
"""Sets of columns that a regression of hits reads, for different knowledge; the richest first."""

_OF_QUERY = QUERY_NAMES[:6]
_OF_TEXTS = ("caption_best_ten",)

QUERY_VIEWS = (
    (*_OF_QUERY, "unknown_share", "log_rate", "log_words", *_OF_TEXTS),
    (*_OF_QUERY, "unknown_share", "log_rate", "log_words"),
    (*_OF_QUERY, "unknown_share", "log_rate"),
    (*_OF_QUERY, "unknown_share"),
    _OF_QUERY,
)
"""Sets of columns that a belief in a query reads, the richest first; columns of the scores are in each."""

QUERY_RISING = (
    "best",
    "best_ten",
    "best_hundred",
    "best_ten_above",
    "log_rate",
    "log_bearers",
    "caption_best_ten",
    "stated_best_ten",
)
"""Columns of a query in which the belief that anything is relevant must not fall while the others are fixed."""

_BEST, _TEN, _HUNDRED = 1, 10, 100
"""Numbers of candidates of an index of up to :data:`_THOUSAND`, and of each thousand of a larger one."""
_THOUSAND = 1000
_USUAL_TEN = 2.66
"""Mean position of the best ten of 1,000 candidates in a normal distribution."""

_LEAST_SPREAD = 1e-6
_ALL = 1 - 1e-9
"""Share of the words from which a text states all of them."""
_RAREST = 1e-3
"""Least share of texts; smaller ones depend on how many texts were looked at."""


def query_features(falling: Values, null: Null, known: Known | None = None, log_rate: float = np.nan) -> Values:
    """(len(QUERY_NAMES),) features of a query from its best hits; NaN stands for unknown.

    Args:
        falling: (hits,) falling scores of the best hits.
        null: Null distribution of the query.
        known: What is known of the query and these hits, if anything.
        log_rate: Logarithm of the share of relevant candidates that the query's vector suggests, if it is known.

    >>> from rungwise.calibration._judgement import Background
    >>> scores = np.sort(np.random.default_rng(0).normal(size=1000))[::-1]
    >>> null = Null.of(Background(scores, 1000))
    >>> dict(zip(QUERY_NAMES, query_features(scores[:50], null).round(1).tolist()))["best"]
    0.2
    """
    return hit_features(falling, null, known, log_rate)[2]


def hit_features(
    falling: Values, null: Null, known: Known | None = None, log_rate: float = np.nan
) -> tuple[NDArray[np.int64], Values, Values]:
    """Features of the best hits of a query, and of the query; arguments are those of :func:`query_features`.

    Returns:
        (rows,) positions of the hits that have features: the nearest, at most :func:`depth_of` of them, and
        :data:`STATING` later ones whose texts state all words. (rows, len(NAMES)) features of them, whose last columns
        repeat those of the query. (len(QUERY_NAMES),) features of the query.
    """
    known = known or Known()
    depth = depth_of(null.total) if known.nearest is None else min(known.nearest, depth_of(null.total))
    first = falling[:depth]
    hits = np.arange(len(first))
    if known.stated is not None:
        hits = np.append(hits, depth + np.flatnonzero(known.stated[depth : len(falling)] >= _ALL)[:STATING])
    excess = _Excess.of(first, null)
    captions, stated = (_of_texts(given, hits) for given in (known.caption_scores, known.stated))
    of_query = _of_query(excess, null, known, captions, stated, log_rate)
    features = np.full((len(hits), len(NAMES)), np.nan)
    features[:, 0] = null.low_positions(falling[hits])
    ranks = np.minimum(hits, len(first))
    own = features[:, 0] - _expected_positions(len(first) + 1, null.total)[ranks]
    features[:, 1] = of_query[0] - own
    features[:, 2] = _log_ranks(len(first) + 1)[ranks] - np.log(null.total)
    features[: len(first), 3] = excess.hits - excess.later(_TEN)
    features[len(first) :, 3] = 0.0
    if captions is not None:
        has_one = np.flatnonzero(~np.isnan(captions))
        some = captions[has_one]
        features[:, 4] = captions
        features[has_one, 5] = (some - some.mean()) / max(float(some.std()), _LEAST_SPREAD)
        features[has_one[np.argsort(-some, kind="stable")], 6] = _log_ranks(len(some))
    if stated is not None:
        features[:, 7] = stated
        features[:, 8] = 0.0 if known.counts is None else np.log1p(known.counts[hits])
    features[:, len(HIT_NAMES) :] = of_query
    return hits, features, of_query


def depth_of(total: int) -> int:
    """Number of best hits that features are made of, in an index of this size.

    >>> depth_of(500), depth_of(5000), depth_of(100_000)
    (200, 500, 1000)
    """
    return min(_DEEPEST, max(DEPTH, int(_DEPTH_SHARE * total)))


@dataclass(frozen=True)
class _Excess:
    """Heights of candidates above those of the same rank in a normal distribution.

    Attributes:
        hits: (hits,) excess of the best hits.
        upper: Excess of the upper tenth of a sample of the index, for shares that go beyond the hits.
        total: Number of candidates of the index.
        sampled: Number of candidates in the sample.
    """

    hits: Values
    upper: Values
    total: int
    sampled: int

    @property
    def _upper_goes_on(self) -> bool:
        """Whether the sample shows candidates after the hits, as it does in a large index."""
        return len(self.upper) * self.total > len(self.hits) * self.sampled

    @property
    def _thousands(self) -> float:
        """Thousands of candidates; a smaller index counts as one."""
        return max(1.0, self.total / _THOUSAND)

    @classmethod
    def of(cls, falling: Values, null: Null) -> _Excess:
        hits = null.low_positions(falling) - _expected_positions(len(falling), null.total)
        upper = null.low_positions(null.upper) - _expected_positions(len(null.upper), null.sampled)
        return cls(hits, upper, null.total, null.sampled)

    def mean(self, count: int) -> float:
        """Mean excess of ``count`` best candidates of each thousand."""
        count = round(count * self._thousands)
        if count <= len(self.hits) or not self._upper_goes_on:
            return float(self.hits[:count].mean())
        return float(self.upper[: max(1, round(count * self.sampled / self.total))].mean())

    def later(self, count: int) -> Values:
        """(hits,) excess of the candidate that stands ``count`` of each thousand after each hit."""
        places = np.arange(len(self.hits)) + round(count * self._thousands)
        later = self.hits[np.minimum(places, len(self.hits) - 1)]
        beyond = places >= len(self.hits)
        if self._upper_goes_on:
            in_sample = ((places[beyond] + 0.5) * (self.sampled / self.total)).astype(np.int64)
            later[beyond] = self.upper[np.minimum(in_sample, len(self.upper) - 1)]
        return later


def _of_query(
    excess: _Excess, null: Null, known: Known, captions: Values | None, stated: Values | None, log_rate: float
) -> Values:
    return np.array(
        [
            excess.mean(_BEST),
            excess.mean(_TEN),
            excess.mean(_HUNDRED),
            null.centre,
            null.low_spread,
            (excess.mean(_TEN) + _USUAL_TEN) * null.low_spread,
            np.nan if known.unknown_share is None else known.unknown_share,
            log_rate,
            np.nan if known.words is None else np.log(max(1, known.words)),
            _log_bearers(known),
            _best_ten(captions),
            _best_ten(stated),
        ]
    )


def _log_bearers(known: Known) -> float:
    """Logarithm of the share of captions that hold all words: pictures with several captions count for each."""
    if known.bearers is None:
        return float(np.nan)
    read = None if known.counts is None else known.counts[:CAPTIONED]
    several = 1.0 if read is None or not len(read) else max(1.0, float(read.mean()))
    return float(np.log(max(_RAREST, (known.bearers + 0.5) / (known.texts + 1)) / several))


def _best_ten(values: Values | None) -> float:
    return np.nan if values is None else float(np.sort(values[~np.isnan(values)])[-_TEN:].mean())


def _of_texts(given: NDArray[np.floating] | None, hits: NDArray[np.int64]) -> Values | None:
    """(hits,) values that texts of hits give, NaN without a text; None without any."""
    if given is None:
        return None
    values = np.full(len(hits), np.nan)
    inside = hits < len(given)
    values[inside] = given[hits[inside]]
    return None if np.isnan(values).all() else values


@lru_cache(maxsize=64)
def _expected_positions(hits: int, total: int) -> Values:
    """(hits,) positions of the best of ``total`` candidates in a normal distribution."""
    from scipy.special import ndtri

    return np.asarray(-ndtri((np.arange(1, hits + 1) - 0.5) / total))


@lru_cache(maxsize=64)
def _log_ranks(hits: int) -> Values:
    return np.log(np.arange(1, hits + 1))
