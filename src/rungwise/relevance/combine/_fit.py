"""Degrees of several sources turned into people's grades by a rising regression.

Neither kind of regression ever lowers a grade because a source gives more:

* ``"isotonic"``: one weighted sum of the standardised sources, with weights that are not negative (Lawson and Hanson
  1974), and one rising curve of this sum (isotonic regression, Barlow et al. 1972)::

      grade = curve( sum over k of  w_k (x_k - m_k) / s_k ),  w_k >= 0

* ``"monotone"``: a rising curve of each source, added up and clipped to the range of the grades (Bacchetti 1989)::

      grade = clip( m + sum over k of curve_k(x_k), lowest grade, highest grade )

  The curves are fitted by backfitting: each in turn to what the others leave. They begin as the weighted sum of the
  other kind and go only half of the way to the best fit, since sources that say nearly the same would otherwise share
  out the noise among themselves.

How well a regression agrees with people is measured on grades that it has not seen: folds by group, such as the image
of a pair, are left out in turn. Boosted trees that are held to rise (scikit-learn) agree no better; see
``docs/guide/relevance/combining.md``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.core import UserError, digest_of_parts, pearson_and_spearman
from rungwise.core.output import short_repr
from rungwise.relevance.combine._curves import Curve, Values, rising_curve

Kind = Literal["isotonic", "monotone"]

FEWEST = 30
"""Smallest number of judged pairs; from fewer no curve is learned."""
MOST_SOURCES = 64
MOST_KNOTS = 256
"""Most knots of a curve: the pairs, in order of degree, are averaged in this many equal shares."""
_SOME_KNOTS = 32
"""Most knots of the curve of one source among several, which is fitted to what the others leave and so noisier."""
_FOLDS = 5
_ROUNDS = 5
_SHRINKAGE = 0.5
_LARGEST = 1e200
"""Largest weight divided by its scale: times a degree in float32 it is still a finite number."""


@dataclass(frozen=True)
class Fit:
    """A fitted regression in plain numbers.

    Attributes:
        kind: Kind of regression, as in the module.
        names: (sources,) what the sources are called.
        hashes: (sources,) content hashes of the sources when this was fitted; empty where they were not given.
        judgements: Hash of the grades and of what they were fitted on.
        pairs: Number of grades.
        low: Lowest grade.
        high: Highest grade.
        centres: (sources,) mean degree of each source.
        scales: (sources,) standard deviation of each source; 1 where it gave all pairs the same degree.
        weights: (sources,) weights of ``"isotonic"``, not negative; empty with ``"monotone"``.
        curves: One curve, or with ``"monotone"`` one for each source.
        pearson: Pearson correlation with people, over grades that were left out of the fit; None where none could be
            left out.
        spearman: Spearman correlation over the same grades.
        folds: Number of parts in which grades were left out in turn.

    >>> draw = np.random.default_rng(0)
    >>> degrees = draw.random((400, 2))
    >>> fit = fit_table(degrees, 5 * np.sqrt(degrees.mean(axis=1)), names=("words", "sentences"))
    >>> fit.apply([[0.0, 0.0], [0.25, 0.25], [1.0, 1.0]]).round(1)
    array([0.8, 2.5, 5. ])
    """

    kind: Kind
    names: tuple[str, ...]
    hashes: tuple[str, ...]
    judgements: str
    pairs: int
    low: float
    high: float
    centres: tuple[float, ...]
    scales: tuple[float, ...]
    weights: tuple[float, ...]
    curves: tuple[Curve, ...]
    pearson: float | None = None
    spearman: float | None = None
    folds: int = 0

    __repr__ = short_repr

    def __post_init__(self) -> None:
        """Refuse numbers that do not fit together."""
        sources, isotonic = len(self.names), self.kind == "isotonic"
        if self.kind not in get_args(Kind):
            raise UserError(f"fit: kind must be 'isotonic' or 'monotone', got {self.kind!r}")
        if not 1 <= sources <= MOST_SOURCES:
            raise UserError(f"fit: {sources} sources; give 1 to {MOST_SOURCES}")
        lengths = [len(self.centres), len(self.scales), len(self.weights), len(self.curves)]
        if lengths != [sources, sources, sources if isotonic else 0, 1 if isotonic else sources]:
            raise UserError(f"fit: numbers of {lengths} parts do not fit {sources} sources")
        if self.hashes and len(self.hashes) != sources:
            raise UserError(f"fit: {len(self.hashes)} hashes of {sources} sources; give one each or none")
        numbers = np.array([self.low, self.high, *self.centres, *self.scales, *self.weights])
        if not np.isfinite(numbers).all() or not self.low < self.high:
            raise UserError("fit: a number is not finite, or the range of grades is empty")
        if min(self.scales) <= 0 or min(self.weights, default=0.0) < 0:
            raise UserError("fit: a scale is not positive, or a weight is negative")
        if any(weight > _LARGEST * scale for weight, scale in zip(self.weights, self.scales, strict=False)):
            raise UserError("fit: a scale is too small for its weight, so that grades would be no numbers")

    def combined(self, columns: Iterable[NDArray[np.generic]]) -> Values:
        """Grades from arrays of degrees, one array for each source, all of one shape; NaN where a degree is NaN."""
        total: Values | None = None
        for place, column in enumerate(columns):
            if self.kind == "isotonic":
                part = (self.weights[place] / self.scales[place]) * (
                    np.asarray(column, np.float64) - self.centres[place]
                )
            else:
                part = self.curves[place].at(column)
            total = part if total is None else np.add(total, part, out=total)
        assert total is not None, "there is at least one source"
        return self.curves[0].at(total) if self.kind == "isotonic" else np.clip(total, self.low, self.high)

    def apply(self, table: ArrayLike) -> Values:
        """(n,) grades of (n, sources) degrees."""
        rows = np.asarray(table, np.float64)
        if rows.ndim != 2 or rows.shape[1] != len(self.names):
            raise UserError(f"fit: degrees of shape {rows.shape} where (pairs, {len(self.names)}) are wanted")
        return self.combined(rows.T)

    def __str__(self) -> str:
        if self.kind == "isotonic":
            shares = zip(self.weights, self.names, strict=True)
        else:  # how far a source can lift a grade
            shares = zip((curve.values[-1] - curve.values[0] for curve in self.curves), self.names, strict=True)
        parts = ", ".join(f"{share:.3g} {name}" for share, name in shares)
        what = "weights" if self.kind == "isotonic" else "reaches"
        line = (
            f"{self.kind} regression on {self.pairs:,} judged pairs, grades {self.low:g}..{self.high:g};"
            f" {what}: {parts}"
        )
        if self.pearson is None or self.spearman is None:
            return f"{line}; agreement with people was not measured"
        return (
            f"{line}; on pairs that were left out of the fit ({self.folds} folds): Pearson {self.pearson:.3f},"
            f" Spearman {self.spearman:.3f}"
        )


def fit_table(
    table: ArrayLike,
    grades: ArrayLike,
    *,
    kind: Kind = "isotonic",
    groups: ArrayLike | None = None,
    names: Sequence[str] = (),
    hashes: Sequence[str] = (),
    judgements: str = "",
) -> Fit:
    """Learn what people would grade from degrees of any pairs, of captions and images or of captions alone.

    Args:
        table: (n, sources) degrees.
        grades: (n,) people's grades.
        kind: Kind of regression, as in the module.
        groups: (n,) or (n, m) numbers, such as the image of each pair, or both images of a pair of captions: what
            shares a group with a fold is left out of the fit that is judged on it. None: each pair by itself.
        names: (sources,) what the sources are called; default: their numbers.
        hashes: (sources,) content hashes of the sources.
        judgements: Hash of the judgements; default: that of the table, the grades and the groups.

    Raises:
        UserError: If shapes do not fit, a degree or a grade is not finite, there are fewer than 30 pairs, all grades
            are the same, or no source rises with them.
    """
    rows, wanted = np.asarray(table, np.float64), np.asarray(grades, np.float64)
    called = tuple(names) or tuple(f"source {place + 1}" for place in range(rows.shape[-1] if rows.ndim == 2 else 0))
    if rows.ndim != 2 or wanted.shape != (len(rows),) or len(called) != rows.shape[1]:
        raise UserError(
            f"fit: degrees of shape {rows.shape}, {wanted.shape} grades and {len(called)} names do not fit; give"
            " (pairs, sources) degrees, a grade for each pair and a name for each source"
        )
    _refuse_unusable(rows, wanted, called)
    sharing = _groups(groups, len(rows))
    judgements = judgements or digest_of_parts([rows, wanted, sharing])
    fit = replace(_learned(rows, wanted, kind, called), hashes=tuple(hashes), judgements=judgements)
    if all(curve.values[0] == curve.values[-1] for curve in fit.curves):
        raise UserError("fit: no source rises with the grades; take other sources, or look whether the grades fall")
    return _cross_validated(fit, rows, wanted, sharing)


def _refuse_unusable(rows: Values, wanted: Values, names: Sequence[str]) -> None:
    if not np.isfinite(wanted).all():
        raise UserError(
            f"fit: {int((~np.isfinite(wanted)).sum())} of {len(wanted)} grades are not finite; leave them out"
        )
    for name, column in zip(names, rows.T, strict=True):
        if missing := int((~np.isfinite(column)).sum()):
            raise UserError(
                f"fit: {name} has no degree of {missing} of the {len(rows)} judged pairs; leave these pairs out, or"
                " take a source that knows them"
            )
    if len(rows) < FEWEST:
        raise UserError(f"fit: {len(rows)} judged pairs; give at least {FEWEST}")
    if np.ptp(wanted) == 0:
        raise UserError(f"fit: all {len(wanted)} grades are {wanted[0]:g}; give judgements that differ")


def _groups(groups: ArrayLike | None, count: int) -> NDArray[np.int64]:
    """(n, m) groups; without any, each pair is a group of its own."""
    sharing = np.arange(count)[:, None] if groups is None else np.asarray(groups, np.int64)
    if sharing.ndim == 1:
        sharing = sharing[:, None]
    if sharing.ndim != 2 or len(sharing) != count or not sharing.shape[1]:
        raise UserError(f"fit: groups of shape {sharing.shape} for {count} judged pairs; give one number or more each")
    return sharing.astype(np.int64)


def _learned(rows: Values, wanted: Values, kind: Kind, names: tuple[str, ...]) -> Fit:
    from scipy.optimize import nnls

    centres, deviations = rows.mean(axis=0), rows.std(axis=0)
    scales = np.where(deviations > 0, deviations, 1.0)
    standard = (rows - centres) / scales
    weights, _ = nnls(standard, wanted - wanted.mean())
    if kind == "isotonic":
        curves: tuple[Curve, ...] = (rising_curve(standard @ weights, wanted, blocks=MOST_KNOTS),)
    else:
        curves = _additive(rows, standard * weights, wanted)
    return Fit(
        kind=kind,
        names=names,
        hashes=(),
        judgements="",
        pairs=len(rows),
        low=float(wanted.min()),
        high=float(wanted.max()),
        centres=tuple(centres.tolist()),
        scales=tuple(scales.tolist()),
        weights=tuple(weights.tolist()) if kind == "isotonic" else (),
        curves=curves,
    )


def _additive(rows: Values, start: Values, wanted: Values) -> tuple[Curve, ...]:
    """A curve for each source by backfitting; the mean grade is shared out among them.

    ``start`` is (n, sources): what each source adds to a grade in the weighted sum.
    """
    share = wanted.mean() / rows.shape[1]
    parts = start + share
    curves: list[Curve] = [Curve((0.0,), (float(share),))] * rows.shape[1]
    for _ in range(_ROUNDS):
        for place in range(rows.shape[1]):
            left = wanted - parts.sum(axis=1) + parts[:, place]
            aimed = _SHRINKAGE * left + (1 - _SHRINKAGE) * (start[:, place] + share)
            curves[place] = rising_curve(rows[:, place], aimed, blocks=_SOME_KNOTS)
            parts[:, place] = curves[place].at(rows[:, place])
    return tuple(curves)


def _cross_validated(fit: Fit, rows: Values, wanted: Values, groups: NDArray[np.int64]) -> Fit:
    distinct, at = np.unique(groups, return_inverse=True)
    folds = min(_FOLDS, len(distinct))
    of = (np.random.default_rng(0).permutation(len(distinct)) % folds)[at].reshape(groups.shape)
    guessed = np.full(len(rows), np.nan)
    for fold in range(folds):
        # A pair is judged in the fold of its first group, and learned from where none of its groups is judged.
        judged, seen = of[:, 0] == fold, (of != fold).all(axis=1)
        if judged.any() and seen.any() and np.ptp(wanted[seen]) > 0:
            guessed[judged] = _learned(rows[seen], wanted[seen], fit.kind, fit.names).apply(rows[judged])
    known = ~np.isnan(guessed)
    if folds < 2 or not known.all() or np.ptp(guessed) == 0:
        return fit
    pearson, spearman = pearson_and_spearman(guessed, wanted)
    return replace(fit, pearson=pearson, spearman=spearman, folds=folds)
