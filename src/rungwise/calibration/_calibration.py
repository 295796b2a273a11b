"""Calibration: from the scores of one query to expected degrees, rungs, and the number of hits to show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.calibration import _json_file as json_file
from rungwise.calibration._f1_cut import best_cut
from rungwise.calibration._false_discovery import belief_from, chance_of_noise, false_discovery_rates
from rungwise.calibration._judgement import (
    BEYOND,
    RUNGS,
    UNJUDGED_RUNGS,
    Background,
    Known,
    Names,
    QueryJudgement,
    Values,
)
from rungwise.calibration._kind_comparison import KindComparison
from rungwise.calibration._null_distribution import Null
from rungwise.calibration.learning import FEWEST_QUERIES, Supervised, checked_pairs, learn
from rungwise.calibration.unrelated import UNJUDGED_BOUNDARIES, Standard, checked_unrelated
from rungwise.core import UserError, digest_of_json
from rungwise.core.output import short_repr
from rungwise.metrics import Direction, JudgedQueries, Scores

_LOOKED_AT = 1000
"""Largest number of hits that may be shown; later ones count by their expected number of relevant ones."""

_SEARCHED, _BY_WORDS = 200, 50
"""Numbers of hits that a search judges at first: the nearest, and those that it finds by their words."""

_LEAST = 1e-9
"""Lower bound of a belief where something is divided by it."""

_OUT_OF_BULK = (0.95, 0.8)
"""Smallest degrees of the rungs 1 and 2 where only the query's own scores are known."""

SHORT = 4
"""Largest number of words of a short query: a phrase, as people type it, and no whole caption."""

_FEWEST_OF_LENGTH = 50
"""Smallest number of queries with something relevant, short or long, from which something is learnt of their own."""

_FEWEST_UNRELATED = 20

_BULK = 1.0
"""Standard deviations over the centre within which no hit stands out, even if many have the same score."""


@dataclass(frozen=True)
class Calibration:
    """Estimates from one query's scores how relevant each hit is, and where relevance ends.

    It is made by :meth:`fit` from judged pairs, by :meth:`unsupervised` without any, or by :meth:`load`.

    Attributes:
        relevant_from: The smallest degree that counts as relevant.
        scale: Smallest and highest degree, between which expected degrees lie.
        source: One line for people on how the calibration was made.
        model_fingerprint: Fingerprint of the model whose scores it reads; empty for any model.
        learnt: What was learnt from judged pairs: of all queries, or of those of at most :data:`SHORT` words and of the
            longer ones; empty of an unsupervised calibration.
        standard: What queries reach that fit nothing; None if it is not known.
        needs_texts: Whether it judges only in an index whose pictures have captions or texts in columns: where it was
            compared without them, harm could not be excluded.
        kinds: How it did on held-out queries of each kind, compared with what judged before; empty if not compared.

    >>> rng = np.random.default_rng(0)
    >>> relevance = (rng.random((200, 500)) < 0.02).astype(float)
    >>> similarity = rng.normal(0.1, 0.05, relevance.shape) + 0.25 * relevance
    >>> calibration = Calibration.fit(similarity, relevance, relevant_from=1)
    >>> scores = rng.normal(0.1, 0.05, 500)
    >>> scores[:7] += 0.3
    >>> calibration.cut(scores)
    7
    >>> calibration.rungs(scores)[:9]
    array([1, 1, 1, 1, 1, 1, 1, 4, 4])
    """

    relevant_from: float
    scale: tuple[float, float]
    source: str
    model_fingerprint: str = ""
    learnt: tuple[Supervised, ...] = ()
    standard: Standard | None = None
    needs_texts: bool = False
    kinds: tuple[KindComparison, ...] = ()

    __repr__ = short_repr

    @classmethod
    def unsupervised(cls, unrelated: ArrayLike | None = None, *, model_fingerprint: str = "") -> Calibration:
        """A calibration without any judgements.

        With scores of unrelated queries (:mod:`rungwise.calibration.unrelated`), those hits are shown that
        stand higher over the query's centre than the best hits of nine in ten unrelated queries, and at least two
        thirds as high as the query's best hit. A degree is the share of the hit's height that lies above the best hit
        of unrelated queries. It is no expected degree of relevance, but is the same for every query: where the best hit
        of a query has a low degree, none of its hits is called "best". "Best" begins at a third, "good" at a fifth.

        Without them, a degree is one minus the local false discovery rate: the probability that the hit does not belong
        to the bulk of the query's own scores (:mod:`rungwise.calibration._null_distribution`,
        :mod:`rungwise.calibration._false_discovery`). Few hits stand out of the bulk so clearly.

        Args:
            unrelated: (texts, candidates) scores of ``UNRELATED`` or of other texts that fit nothing, with all
                candidates of the index or a sample of them.
            model_fingerprint: Fingerprint of the model that gave the scores; empty if the calibration should accept
                any.

        Raises:
            UserError: If there are fewer than 10 texts, or their scores are constant or not finite.

        >>> rng = np.random.default_rng(0)
        >>> calibration = Calibration.unsupervised(rng.normal(0.1, 0.05, (48, 2000)))
        >>> calibration.source
        'no judgements: by how far hits stand above those of unrelated queries'
        >>> calibration.names
        ('best', 'good', 'further')
        >>> calibration.cut(np.append(rng.normal(0.1, 0.05, 1993), np.full(7, 0.4)))
        7
        """
        scale, source = (0.0, 1.0), "no judgements: by how far hits stand"
        if unrelated is None:
            return cls(0.5, scale, f"{source} out of the bulk", model_fingerprint)
        standard, source = Standard.of(unrelated), f"{source} above those of unrelated queries"
        return cls(UNJUDGED_BOUNDARIES[1], scale, source, model_fingerprint, standard=standard)

    @classmethod
    def fit(
        cls,
        similarity: ArrayLike,
        relevance: ArrayLike,
        relevant_from: float = 0.5,
        *,
        known: Sequence[Known] | None = None,
        unrelated: ArrayLike | None = None,
        unrelated_known: Sequence[Known] | None = None,
        overlooked: ArrayLike | None = None,
        fewest: int = FEWEST_QUERIES,
        source: str = "judged pairs",
        model_fingerprint: str = "",
    ) -> Calibration:
        """Learn from queries whose candidates were judged by people or by a relevance source.

        Args:
            similarity: (queries, candidates) scores of a model.
            relevance: (queries, candidates) degrees on any scale; NaN for a pair that nobody judged.
            relevant_from: The smallest degree that counts as relevant.
            known: (queries,) what is known of each query besides its scores; candidates in the order of ``similarity``.
            unrelated: (texts, candidates) scores of ``UNRELATED`` or of other texts to which none of these candidates,
                or of a sample of them, is relevant. They teach to recognise queries to which nothing is relevant.
            unrelated_known: (texts,) what is known of each of these texts.
            overlooked: (queries, candidates) probability, from 0 to below 1, that a pair is relevant although nobody
                said so, and has the highest degree; 0 for all if None.
            fewest: Smallest number of queries; with fewer, it would describe these queries and not the next one.
            source: One line for people on how pairs were judged.
            model_fingerprint: Fingerprint of the model that gave the scores; empty if the calibration should accept
                any.

        Raises:
            UserError: If there are fewer than ``fewest`` queries or only one candidate, scores are constant or not
                finite, degrees are all the same or never relevant, or shapes do not fit.

        >>> Calibration.fit(np.zeros((3, 4)), np.zeros((3, 4)))
        Traceback (most recent call last):
        rungwise.core.UserError: relevance: 3 queries with a judged candidate; give at least 20
        """
        scores, degrees = checked_pairs(similarity, relevance, relevant_from, fewest)
        if known is not None and len(known) != len(scores):
            raise UserError(f"known: {len(known)} queries, but similarity has {len(scores)}; give one for each")
        nothing = None if unrelated is None else checked_unrelated(unrelated)
        if unrelated_known is not None and (nothing is None or len(unrelated_known) != len(nothing)):
            texts = 0 if nothing is None else len(nothing)
            raise UserError(f"unrelated_known: {len(unrelated_known)} texts, unrelated {texts}; give one for each")
        missed = None if overlooked is None else np.asarray(overlooked, np.float64)
        if missed is not None and (missed.shape != scores.shape or not ((missed >= 0) & (missed < 1)).all()):
            raise UserError(f"overlooked: give numbers from 0 to below 1, of shape {scores.shape}")
        learnt = tuple(
            learn(
                scores[some],
                degrees[some],
                relevant_from,
                None if known is None else [known[query] for query in some.tolist()],
                None if nothing is None else nothing[foreign],
                None if unrelated_known is None else [unrelated_known[text] for text in foreign.tolist()],
                None if missed is None else missed[some],
            )
            for some, foreign in _by_length(degrees, relevant_from, known, unrelated_known, nothing)
        )
        scale = (min(0.0, float(np.nanmin(degrees))), float(np.nanmax(degrees)))
        return cls(float(relevant_from), scale, source, model_fingerprint, learnt)

    @property
    def names(self) -> Names:
        """Names of the rungs 1, 2 and 3: ``RUNGS`` where judgements stand behind them, else ``UNJUDGED_RUNGS``."""
        return RUNGS if self.learnt else UNJUDGED_RUNGS

    def degrees(self, scores: ArrayLike, known: Known | None = None) -> Values:
        """Expected degree of each candidate of one query.

        Args:
            scores: (candidates,) scores of the query, in any order.
            known: What is known of the query and these candidates, in the same order.

        Returns:
            (candidates,) degrees in the same order, within :attr:`scale`.

        Raises:
            UserError: If there are fewer than two scores, or one is not finite.
        """
        return self._whole(scores, known)[0]

    def rungs(self, scores: ArrayLike, known: Known | None = None) -> NDArray[np.int64]:
        """Rung of each candidate: 1 to 3 as in :attr:`names`, 4 after the end; arguments of :meth:`degrees`."""
        degrees, best, judged = self._whole(scores, known)
        rungs = np.full(len(degrees), BEYOND)
        rungs[best] = judged.rungs
        return rungs

    def cut(self, scores: ArrayLike, known: Known | None = None) -> int:
        """Number of best candidates of one query to show, 0 for "nothing relevant"; arguments of :meth:`degrees`."""
        return self._whole(scores, known)[2].cut

    def belief(self, scores: ArrayLike, known: Known | None = None) -> float:
        """Belief that any candidate of one query is relevant, 0..1; arguments of :meth:`degrees`."""
        return self._whole(scores, known)[2].belief

    def judge(
        self, scores: Scores, direction: Direction, queries: NDArray[np.int64], known: Sequence[Known] | None = None
    ) -> JudgedQueries:
        """Judge a block of queries by all of their scores, as :class:`rungwise.metrics.Ends` says.

        Args:
            scores: (queries, candidates) similarities.
            direction: Direction of the queries, which makes no difference.
            queries: (queries,) positions in ``known``.
            known: What is known of all queries.
        """
        degrees, shown = np.empty(scores.shape), np.zeros(scores.shape, bool)
        cuts, beliefs = np.zeros(len(scores), np.int64), np.zeros(len(scores))
        for row, one in enumerate(scores):
            about = known[int(queries[row])] if known is not None else None
            degrees[row], best, judged = self._whole(one, about)
            cuts[row], beliefs[row] = judged.cut, judged.belief
            shown[row, best] = judged.rungs < BEYOND
        return JudgedQueries(cuts, beliefs, degrees, shown)

    def informed(self, known: Sequence[Known]) -> Informed:
        """The calibration together with what is known of all queries of a collection, for measures."""
        return Informed(self, tuple(known))

    def judge_hits(
        self, scores: NDArray[np.floating], background: Background, known: Known | None = None
    ) -> QueryJudgement:
        """Judge the best hits of one query, as a search finds them.

        Args:
            scores: (hits,) falling scores of the best candidates.
            background: Scores of the query with a fixed sample of all candidates.
            known: What is known of the query and these hits.

        Raises:
            UserError: If a score is not finite or higher than the one before, or there are fewer than two candidates.

        >>> rng = np.random.default_rng(0)
        >>> scores = np.sort(np.concatenate([rng.normal(0.1, 0.05, 10_000), np.full(5, 0.6)]))[::-1]
        >>> sample = Background(rng.choice(scores, 2000), total=len(scores))
        >>> Calibration.unsupervised().judge_hits(scores[:50], sample).cut
        5
        """
        falling = _checked(scores, background.total)
        if len(falling) > 1 and (falling[1:] > falling[:-1]).any():
            raise UserError("scores: a hit scores higher than the one before it; give hits in falling order")
        return self._judged(falling, Null.of(background), known)

    def judge_all(self, scores: ArrayLike, known: Known | None = None) -> tuple[NDArray[np.int64], QueryJudgement]:
        """Judge one query as a search does, by the scores of all candidates; arguments of :meth:`degrees`.

        A search judges the 200 nearest and those that it finds by their words; more only where it shows all of them.

        Returns:
            (hits,) positions of the candidates that are judged by falling score, and the judgement of these hits.
        """
        values = _checked(np.asarray(scores), np.size(scores))
        order = _best_first(values, len(values))
        hits = order[:_SEARCHED]
        if known is not None and known.stated is not None:
            later = order[_SEARCHED:]
            hits = np.append(hits, later[known.stated[later] >= 1 - _LEAST][:_BY_WORDS])
        background = Background(values, len(values))
        nearest = min(_SEARCHED, len(order))
        of_hits = known and replace(known.of_hits(hits), nearest=nearest)
        judged = self.judge_hits(values[hits], background, of_hits)
        if judged.cut == len(hits) < len(values):
            hits = order[:_LOOKED_AT]
            judged = self.judge_hits(values[hits], background, known and known.of_hits(hits))
        return hits, judged

    def check(self, fingerprint: str) -> None:
        """Refuse a model for whose scores this calibration was not made.

        >>> from dataclasses import replace
        >>> replace(Calibration.unsupervised(), model_fingerprint="ab12").check("cd34")
        Traceback (most recent call last):
        rungwise.core.UserError: the calibration is of another model (ab12, not cd34); calibrate this one, or ...
        """
        if self.model_fingerprint and self.model_fingerprint != fingerprint:
            raise UserError(
                f"the calibration is of another model ({self.model_fingerprint[:12]}, not {fingerprint[:12]});"
                " calibrate this one, or use the model that it is of"
            )

    def save(self, path: Path | str) -> None:
        """Write the calibration as JSON."""
        json_file.write(self._as_json(), Path(path))

    @classmethod
    def load(cls, path: Path | str) -> Calibration:
        """Read and check a file that :meth:`save` wrote.

        Raises:
            MissingFileError: If the file does not exist.
            UserError: If the file is damaged, of an unknown version or no calibration.
        """
        return cls(**json_file.read(Path(path)))

    def __str__(self) -> str:
        return f"calibration by {self.source}, hash {self._hash[:16]}"

    @cached_property
    def _hash(self) -> str:
        return digest_of_json(self._as_json())

    def _as_json(self) -> dict[str, object]:
        return json_file.as_json({field.name: getattr(self, field.name) for field in fields(self)})

    def _whole(self, scores: ArrayLike, known: Known | None) -> tuple[Values, NDArray[np.int64], QueryJudgement]:
        """Degrees in the given order, positions of the best candidates by falling score, and the judgement of these."""
        values = np.asarray(scores)
        checked = _checked(values, len(values) if values.ndim else 0)
        null = Null.of(Background(checked, len(checked)))
        best = _best_first(checked, _LOOKED_AT)
        judged = self._judged(checked[best], null, known and known.of_hits(best))
        least = float(judged.degrees.min())
        if self.standard is not None:
            degrees = self.standard.degrees(checked - null.centre, null.total)
        elif not self.learnt:
            # Those after them stand out as the last of them does, or less; almost always not at all.
            degrees = np.minimum(np.maximum(null.positions(checked), 0.0), 1.0) * least
        else:
            curve = self._learnt_of(known).curve
            degrees = np.minimum(np.clip(curve.degrees_at(null.positions(checked)), *self.scale), least)
        degrees[best] = judged.degrees
        return degrees, best, judged

    def _learnt_of(self, known: Known | None) -> Supervised:
        """What was learnt from queries of about this length."""
        short = known is not None and known.words is not None and known.words <= SHORT
        return self.learnt[0] if short else self.learnt[-1]

    def _judged(self, falling: Values, null: Null, known: Known | None) -> QueryJudgement:
        hits = len(falling)
        if not hits:
            return QueryJudgement(np.zeros(0), np.zeros(0, np.int64), cut=0, belief=0.0)
        if not null.spread and falling[0] <= null.centre:
            return QueryJudgement(np.full(hits, self.scale[0]), np.full(hits, BEYOND), cut=0, belief=0.0)
        if self.standard is not None:
            heights = falling - null.centre
            belief = float(self.standard.standing_out(heights[:1], null.total)[0])
            degrees, cut = self.standard.degrees(heights, null.total), self.standard.cut(heights, null.total)
            return _named(degrees, np.arange(hits) < cut, belief, UNJUDGED_BOUNDARIES)
        if self.learnt:
            found = self._learnt_of(known).judged(falling, null, known)
            degrees, belief = np.clip(found.degrees, *self.scale), found.belief
            shown = np.zeros(hits, bool)
            if found.enough:
                shown = _likeliest(found.probabilities, found.beyond, belief, found.rule.shift)
            return _named(degrees, shown, belief, (found.rule.exactly, found.rule.close))
        positions = null.positions(falling)
        expected = null.expected_false(positions[positions >= _BULK])
        belief = belief_from(chance_of_noise(expected))
        degrees = np.zeros(hits)
        degrees[: len(expected)] = 1 - false_discovery_rates(expected)
        beyond = max(0.0, null.total - null.irrelevant - float(degrees.sum()))
        # Of hits and others, if anything is relevant.
        given = max(belief, _LEAST)
        shown = _likeliest(np.minimum(degrees / given, 1.0), beyond / given, belief, 0.0)
        return _named(degrees, shown, belief, _OUT_OF_BULK)


@dataclass(frozen=True)
class Informed:
    """A calibration that knows more of each query of a collection than its scores.

    Attributes:
        calibration: The calibration that judges.
        known: (queries,) what is known of each query; entries of candidates are in the collection's order.
    """

    calibration: Calibration
    known: tuple[Known, ...]

    __repr__ = short_repr

    def judge(self, scores: Scores, direction: Direction, queries: NDArray[np.int64]) -> JudgedQueries:
        """Judge a block of queries, as :class:`rungwise.metrics.Ends` says."""
        return self.calibration.judge(scores, direction, queries, self.known)

    def __str__(self) -> str:
        return f"{self.calibration}, with what is known of the queries"


def _likeliest(probabilities: Values, beyond: float, belief: float, shift: float) -> NDArray[np.bool_]:
    """(hits,) which hits are shown: the likeliest, since captions may make a hit likelier than one before it."""
    likeliest = np.argsort(-probabilities, kind="stable")
    ordered = probabilities[likeliest]
    beyond += float(ordered[_LOOKED_AT:].sum())
    shown = np.zeros(len(probabilities), bool)
    shown[likeliest[: best_cut(ordered[:_LOOKED_AT], beyond, belief, shift)]] = True
    return shown


def _named(degrees: Values, shown: NDArray[np.bool_], belief: float, boundaries: tuple[float, float]) -> QueryJudgement:
    """The judgement of hits with these degrees; ``boundaries`` are the smallest degrees of the rungs 1 and 2."""
    first, second = boundaries
    rungs = np.where(degrees >= first, 1, np.where(degrees >= second, 2, 3))
    return QueryJudgement(degrees, np.where(shown, rungs, BEYOND), int(np.count_nonzero(shown)), belief)


def _by_length(
    degrees: Values,
    relevant_from: float,
    known: Sequence[Known] | None,
    unrelated_known: Sequence[Known] | None,
    unrelated: Values | None,
) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Positions of the short queries and of the long ones, if there are enough of both; else of all.

    With each stand the unrelated texts of such a length, if there are enough; else all of them.
    """
    every, foreign = np.arange(len(degrees)), np.arange(0 if unrelated is None else len(unrelated))
    if known is None or any(one.words is None for one in known):
        return [(every, foreign)]
    is_short = _short(known)
    judged = (degrees >= relevant_from).any(axis=1)
    if min((judged & is_short).sum(), (judged & ~is_short).sum()) < _FEWEST_OF_LENGTH:
        return [(every, foreign)]
    short = np.zeros(len(foreign), bool) if unrelated_known is None else _short(unrelated_known)
    parts = (is_short, short), (~is_short, ~short)
    return [(every[own], foreign[text] if text.sum() >= _FEWEST_UNRELATED else foreign) for own, text in parts]


def _short(known: Sequence[Known]) -> NDArray[np.bool_]:
    return np.array([one.words is not None and one.words <= SHORT for one in known], bool)


def _best_first(scores: Values, most: int) -> NDArray[np.int64]:
    """Positions of the best scores in falling order; of equal scores, the lower position first."""
    if len(scores) <= most:
        return np.argsort(-scores, kind="stable")
    least = np.partition(scores, len(scores) - most)[len(scores) - most]
    best = np.flatnonzero(scores >= least)
    return best[np.argsort(-scores[best], kind="stable")][:most]


def _checked(scores: ArrayLike, total: int) -> Values:
    values = np.asarray(scores, np.float64)
    if values.ndim != 1:
        raise UserError(f"scores: {values.ndim} dimensions; give the scores of one query, (candidates,)")
    if total < 2:
        raise UserError(f"scores: {total} candidates; where relevance ends shows among two or more")
    if not np.isfinite(values).all():
        raise UserError("scores: one is not finite; the model, or a vector of the index, is damaged")
    return values
