"""Measures of graded relevance: they compare retrieved lists with the degrees R."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError, row_sums
from rungwise.metrics._blocks import CheckedDegrees
from rungwise.metrics._measures import DEGREE, Measure, Total
from rungwise.metrics._rankings import Direction, Positives, Rankings, Scores, is_among
from rungwise.metrics._relevant_sets import relevant_sets


@dataclass(frozen=True)
class GradedMeasure(Measure):
    """A measure of the retrieved list by degrees of relevance."""

    graded: ClassVar[bool] = True


@dataclass(frozen=True)
class NCS(GradedMeasure):
    """NCS@K, normalised cumulative semantic score: sum of R over the top K / sum of the K largest R, times 100.

    Biten et al. 2022, Eq. 5 without its intersection with a top-m set, which the paper's own tables leave out; a mean
    of ratios over queries. An ideal of 0 counts 0. ``non_gt`` removes the annotated positives from the candidates and
    from the ideal: the paper's "(N)" columns.

    With m it is Eq. 5 as printed: the sum of R over those of the top K that are among the m most relevant candidates /
    the sum of R over these m. Ties in R go to the lower index. With K below m a perfect ranking can have less than 100.

    >>> from rungwise.metrics._rankings import rank_all
    >>> rankings = rank_all([[0.9, 0.8, 0.1]], [[0]], relevance=[[1.0, 0.2, 0.4]])
    >>> NCS(k=1).per_query(rankings), NCS(k=1, non_gt=True).per_query(rankings)
    (array([100.]), array([50.]))
    >>> NCS(k=2, m=2).per_query(rankings).round(2)
    array([71.43])
    """

    k: int
    m: int | None = None
    non_gt: bool = False
    name: ClassVar[str] = "NCS"

    @property
    def definition(self) -> str:
        """One sentence, by the options."""
        if self.m:
            found = "Degrees of the m most relevant candidates that are in the first K"
            ideal = "all m"
        else:
            found, ideal = "Degrees of the first K candidates", "the K largest"
        without = ", annotated ones left out" if self.non_gt else ""
        return f"{found}, added up, as a percentage of {ideal} (cumulative semantic score){without}."

    @property
    def breadth(self) -> int:
        """m, or K without m, since the ideal list is then as long as the retrieved one."""
        return self.m or self.k

    def per_query(self, rankings: Rankings) -> NDArray[np.float64]:
        """(queries,) percentages."""
        got = rankings.relevance_of_top(self.k, self.non_gt)
        if self.m:
            listed, _ = _retrieved(rankings, self.k, self.non_gt)
            relevant, exist = rankings.most_relevant(self.m, self.non_gt)
            got = np.where(is_among(listed, np.sort(_numbered(rankings, relevant)[exist])), got, 0)
        return _share(row_sums(got), row_sums(rankings.ideal(self.breadth, self.non_gt)))

    def remarks(self, rankings: Rankings) -> dict[str, int]:
        """Number of queries to which nothing at all is relevant."""
        return _without_ideal(rankings.ideal(1, self.non_gt))


@dataclass(frozen=True)
class NDCG(GradedMeasure):
    """nDCG@K with gain R and discount log2(rank + 1), times 100; an ideal of 0 counts 0.

    The gain is linear, not 2^R - 1 as in some programs: R is a degree, not a grade.

    Candidates of one score stand in the order of their positions. ``nDCG@10(ties=expected)`` is the mean over all
    orders of such candidates instead: every place that a tied group takes has the mean degree of the whole group, also
    of those of its members that stand behind place K (McSherry and Najork 2008, section 2.6). So no collection is
    favoured by the order of its files, and ``sklearn.metrics.ndcg_score`` gives the same number.

    >>> from rungwise.metrics._rankings import rank_all
    >>> rankings = rank_all([[0.9, 0.8, 0.8]], [[0]], relevance=[[0.0, 1.0, 0.0]])
    >>> NDCG(k=2).per_query(rankings).round(2), NDCG(k=2, ties="expected").per_query(rankings).round(2)
    (array([63.09]), array([31.55]))
    """

    k: int
    ties: Literal["position", "expected"] = field(default="position", metadata={"words": ("position", "expected")})
    name: ClassVar[str] = "nDCG"

    @property
    def definition(self) -> str:
        """One sentence, by what becomes of ties."""
        if self.ties == "expected":
            return (
                "Degrees of the first K candidates over log2(rank + 1), added up, as a percentage of the ideal order;"
                " mean over all orders of equal scores."
            )
        return (
            "Degrees of the first K candidates, each over log2(rank + 1), added up, as a percentage of the same sum of"
            " the ideal order."
        )

    @property
    def breadth(self) -> int:
        """K, since the ideal list is as long as the retrieved one."""
        return self.k

    @property
    def reads_rows(self) -> bool:
        """Whether ties are averaged: those of the last place may stand anywhere behind it."""
        return self.ties == "expected"

    def per_query(self, rankings: Rankings) -> NDArray[np.float64]:
        """(queries,) percentages."""
        got, ideal = rankings.relevance_of_top(self.k), rankings.ideal(self.k)
        if self.ties == "expected" and got.size:
            got = _over_ties(got, rankings.scores_of_top(self.k), rankings)
        discount = 1.0 / np.log2(np.arange(got.shape[1]) + 2.0)
        return _share(row_sums(got * discount), row_sums(ideal * discount))

    def remarks(self, rankings: Rankings) -> dict[str, int]:
        """Number of queries to which nothing at all is relevant."""
        return _without_ideal(rankings.ideal(1))


def _over_ties(degrees: NDArray[np.float64], scores: Scores, rankings: Rankings) -> NDArray[np.float64]:
    """(queries, K) degrees of a list, with those of each group of equal scores replaced by the group's mean.

    The last group goes on behind the list and is read from the whole row.
    """
    begins = np.ones(scores.shape, dtype=np.bool_)
    begins[:, 1:] = scores[:, 1:] != scores[:, :-1]
    group = np.cumsum(begins.ravel()) - 1
    means = (np.bincount(group, weights=degrees.ravel()) / np.bincount(group))[group].reshape(scores.shape)
    last = scores[:, -1:]
    tied = rankings.scores == last
    whole = row_sums(np.where(tied, rankings.relevance, 0).astype(np.float64)) / tied.sum(axis=1)
    return np.asarray(np.where(scores == last, whole[:, None], means))


class JudgedMeasure(GradedMeasure):
    """A measure of the candidates that people judged, in the order of S; R is NaN for all others, which are left out.

    A candidate that nobody judged is neither right nor wrong (condensed lists; Sakai 2007).
    """

    takes_gaps: ClassVar[bool] = True

    @property
    def depth(self) -> int:
        """0, since whole rows are read in any case."""
        return 0

    @property
    def reads_rows(self) -> bool:
        """True: a judged candidate may stand anywhere."""
        return True


@dataclass(frozen=True)
class JudgedNDCG(JudgedMeasure):
    """JudgedNDCG@K: nDCG@K of the candidates that have a degree, as if there were no others, times 100.

    A query of which no candidate was judged, or nothing that was judged is relevant, has no value.

    >>> from rungwise.metrics._rankings import rank_all
    >>> rankings = rank_all([[0.9, 0.8, 0.7]], [[2]], relevance=[[np.nan, 0.0, 1.0]])
    >>> JudgedNDCG(k=10).per_query(rankings).round(2)
    array([63.09])
    """

    k: int
    name: ClassVar[str] = "JudgedNDCG"
    meaning: ClassVar[str] = (
        "The measure nDCG@K of the candidates that people judged; those that nobody judged are left out."
    )

    def per_query(self, rankings: Rankings) -> NDArray[np.float64]:
        """(queries,) percentages."""
        judged = _Judged.of(rankings)
        got, ideal = (judged.sums(_discounted(own, judged.place, self.k)) for own in (judged.degrees, judged.falling))
        return _percent(got, ideal)

    def remarks(self, rankings: Rankings) -> dict[str, int]:
        """Number of queries of which nothing that was judged is relevant."""
        judged = _Judged.of(rankings)
        return _left_out(judged.sums(judged.degrees) > 0)


@dataclass(frozen=True)
class JudgedAP(JudgedMeasure):
    """JudgedAP(t): average precision of the candidates that have a degree, those of t or more being right, times 100.

    A query without a right candidate has no value.

    >>> from rungwise.metrics._rankings import rank_all
    >>> rankings = rank_all([[0.9, 0.8, 0.7, 0.1]], [[3]], relevance=[[np.nan, 0.2, 0.6, 1.0]])
    >>> JudgedAP(0.5).per_query(rankings).round(2)
    array([58.33])
    """

    t: float
    name: ClassVar[str] = "JudgedAP"
    meaning: ClassVar[str] = (
        "Average precision of the candidates that people judged, right from a degree of t; others are left out."
    )

    def per_query(self, rankings: Rankings) -> NDArray[np.float64]:
        """(queries,) percentages."""
        judged = _Judged.of(rankings)
        right = judged.degrees >= self.t
        found: NDArray[np.int64] = np.cumsum(right) - (np.cumsum(right) - right)[judged.starts[judged.query]]
        sums, counts = judged.sums(np.where(right, found / judged.place, 0.0)), judged.sums(right)
        return _percent(sums, counts)

    def remarks(self, rankings: Rankings) -> dict[str, int]:
        """Number of queries of which no judged candidate is right."""
        judged = _Judged.of(rankings)
        return _left_out(judged.sums(judged.degrees >= self.t) > 0)


class _Judged(NamedTuple):
    """The judged candidates of all queries in a row, those of a query by falling score, ties by the lower index.

    Attributes:
        queries: Number of queries.
        query: (judged,) position of the query.
        starts: (queries,) where the candidates of each query begin; meaningless for one without any.
        place: (judged,) rank among the judged candidates of the query, from 1.
        degrees: (judged,) degrees.
        falling: (judged,) degrees of each query by falling degree.
    """

    queries: int
    query: NDArray[np.int64]
    starts: NDArray[np.int64]
    place: NDArray[np.int64]
    degrees: NDArray[np.float64]
    falling: NDArray[np.float64]

    @classmethod
    def of(cls, rankings: Rankings) -> _Judged:
        rows, columns = np.nonzero(~np.isnan(rankings.relevance))
        degrees = rankings.relevance[rows, columns].astype(np.float64)
        if degrees.size and degrees.min() < 0:
            raise UserError(
                f"relevance: a degree of {degrees.min():.3g} is negative, which no gain can be; add a number to all"
            )
        by_score = np.lexsort((columns, -rankings.scores[rows, columns], rows))
        counts = np.bincount(rows, minlength=len(rankings.relevance))
        starts = np.cumsum(counts) - counts
        place = np.arange(len(rows)) - starts[rows] + 1
        return cls(len(counts), rows, starts, place, degrees[by_score], degrees[np.lexsort((-degrees, rows))])

    def sums(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """(queries,) sums of one value per judged candidate."""
        return np.bincount(self.query, weights=values, minlength=self.queries).astype(np.float64)


def _discounted(gains: NDArray[np.float64], place: NDArray[np.int64], k: int) -> NDArray[np.float64]:
    return np.where(place <= k, gains / np.log2(place + 1.0), 0.0)


def _percent(part: NDArray[np.float64], whole: NDArray[np.float64]) -> NDArray[np.float64]:
    """(queries,) percentages; NaN where the whole is 0."""
    return np.asarray(100.0 * np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0))


def _left_out(known: NDArray[np.bool_]) -> dict[str, int]:
    missing = int((~known).sum())
    return {"nothing relevant among what was judged, left out": missing} if missing else {}


class DegreeCurves(NamedTuple):
    """Degrees by rank, of some queries.

    Attributes:
        retrieved: (queries, K) degrees of the candidates at ranks 1 to K; NaN beyond the end of a shorter gallery.
        ideal: (queries, K) the K largest degrees, falling, which the best possible ranking has there.
        chance: (queries,) mean degree of all candidates, which a ranking at random has at every rank.
    """

    retrieved: NDArray[np.float64]
    ideal: NDArray[np.float64]
    chance: NDArray[np.float64]


@dataclass(frozen=True)
class MeanDegree(GradedMeasure):
    """MeanDegree@K: mean degree of the K candidates that S ranks first, on the scale of the degrees.

    A query's value is a row of 2 K + 1 numbers, from which curves of the degree by rank are drawn: the degrees at ranks
    1 to K; the K largest degrees, falling; the mean degree of all candidates. :meth:`curves` takes it apart. In a
    gallery of fewer than K candidates the mean is over those that there are, and the rest is NaN.

    >>> from rungwise.metrics._rankings import rank_all
    >>> measure = MeanDegree(k=2)
    >>> rows = measure.per_query(rank_all([[0.9, 0.8, 0.1]], [[0]], relevance=[[0.5, 0.0, 1.0]]))
    >>> rows
    array([[0.5, 0. , 1. , 0.5, 0.5]])
    >>> measure.aggregate(rows), measure.curves(rows).ideal
    (0.25, array([[1. , 0.5]]))
    """

    k: int
    name: ClassVar[str] = "MeanDegree"
    unit: ClassVar[str] = DEGREE
    bounds: ClassVar[tuple[float, float]] = (0.0, float("inf"))

    @property
    def parts(self) -> int:  # type: ignore[override]
        """2 K + 1."""
        return 2 * self.k + 1

    @property
    def breadth(self) -> int:
        """K, since the ideal list is as long as the retrieved one."""
        return self.k

    def per_query(self, rankings: Rankings) -> NDArray[np.float64]:
        """(queries, 2 K + 1) degrees."""
        got, ideal = rankings.relevance_of_top(self.k), rankings.ideal(self.k)
        missing = np.full((len(got), self.k - got.shape[1]), np.nan)
        return np.hstack([got, missing, ideal, missing, rankings.mean_degrees[:, None]])

    def curves(self, values: NDArray[np.float64]) -> DegreeCurves:
        """Take (queries, 2 K + 1) values apart."""
        return DegreeCurves(values[:, : self.k], values[:, self.k : -1], values[:, -1])

    def of_query(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """(queries,) means over the ranks that there are."""
        got = self.curves(values).retrieved
        counts = (~np.isnan(got)).sum(axis=1)
        nothing = np.full(len(got), np.nan)
        return np.asarray(np.divide(row_sums(np.nan_to_num(got)), counts, out=nothing, where=counts > 0))

    def aggregate(self, values: NDArray[np.float64]) -> float:
        """Mean over the queries."""
        return super().aggregate(self.of_query(values))

    def aggregate_draws(self, values: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """(draws,) means, where each query counts as often as it was drawn."""
        return super().aggregate_draws(self.of_query(values), weights)


@dataclass(frozen=True)
class SR(GradedMeasure):
    """SR@K, semantic recall: 100 x the share of the top m by R in the top K by S (Biten et al. 2022, section 3.2).

    The m most relevant candidates replace the annotation as the right answers; ties in R go to the lower index. By
    default m is the number of the query's own captions for i2t (an image without captions has no value) and 1 for t2i.

    With ``lists`` the sets are those of the authors' program (:func:`rungwise.metrics._relevant_sets.relevant_sets`): m
    images (1 by default), chosen from the lists of that length of all captions of an image, and their captions. The
    program's list is as long as the largest K that it is asked for, 30 in its own script, and the annotation is
    removed: ``SR@10(m=1,non_gt,lists=30)``.

    With ``any`` a query has 100 if any right candidate is in the top K, and else 0: "Recall" in Figure 3 (section 5.1)
    and ``vse_recall`` in the authors' program. It is to SR what :class:`~rungwise.metrics.R` is to
    :class:`~rungwise.metrics.Recall`.

    >>> from rungwise.metrics._rankings import rank_all
    >>> rankings = rank_all([[0.9, 0.8, 0.1]], [[0]], relevance=[[1.0, 0.2, 0.4]])
    >>> SR(k=2, m=2).per_query(rankings), SR(k=2, m=2, any=True).per_query(rankings)
    (array([50.]), array([100.]))
    """

    k: int
    m: int | None = None
    non_gt: bool = False
    lists: int | None = None
    any: bool = False
    name: ClassVar[str] = "SR"

    @property
    def definition(self) -> str:
        """One sentence, by the options."""
        given = bool(self.m or self.lists)
        which = (
            "the m most relevant candidates" if given else "the most relevant candidates, as many as it has captions,"
        )
        without = ", annotated ones left out" if self.non_gt else ""
        if self.any:
            return f"Percentage of queries with one of {which} among the first K{without}."
        return f"Semantic recall: percentage of {which} that are among the first K{without}."

    @property
    def breadth(self) -> int:
        """m, which is 1 for caption queries by default; 0 where the sets are made beforehand."""
        return 0 if self.lists else self.m or 1

    def sets(
        self, relevance: CheckedDegrees, image_of_caption: NDArray[np.int64], images: int
    ) -> dict[Direction, Positives] | None:
        """The authors' sets, where ``lists`` asks for them."""
        if self.lists is None:
            return None
        return relevant_sets(relevance, image_of_caption, images, self.m or 1, self.lists, self.non_gt)

    def per_query(self, rankings: Rankings) -> NDArray[np.float64]:
        """(queries,) percentages."""
        listed, listed_exist = _retrieved(rankings, self.k, self.non_gt)
        right, counts = self._right(rankings)
        hits = (is_among(listed, right) & listed_exist).sum(axis=1)
        values = 100.0 * (hits > 0) if self.any else _share(hits.astype(np.float64), counts)
        return np.where(self._asked(rankings) == 0, np.nan, values)

    def remarks(self, rankings: Rankings) -> dict[str, int]:
        """Numbers of queries without right candidates, and of those whose gallery holds only removed positives."""
        asked, counts = self._asked(rankings) > 0, self._right(rankings)[1]
        reasons = {"no positive, left out": ~asked, "no other candidate, counted 0": asked & (counts == 0)}
        return {reason: int(which.sum()) for reason, which in reasons.items() if which.any()}

    def _right(self, rankings: Rankings) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Right candidates, ascending, as query * gallery + candidate, and (queries,) their number."""
        if self.lists:
            sets = rankings.sets[self]
            return sets.query * rankings.gallery + sets.candidate, sets.counts
        wanted = self._asked(rankings)
        relevant, exist = rankings.most_relevant(int(wanted.max(initial=0)), self.non_gt)
        exist = exist & (np.arange(relevant.shape[1]) < wanted[:, None])
        return np.sort(_numbered(rankings, relevant)[exist]), exist.sum(axis=1)

    def _asked(self, rankings: Rankings) -> NDArray[np.int64]:
        """(queries,) number of right candidates that the query should find."""
        if self.lists:
            return rankings.sets[self].counts
        counts = rankings.positives.counts
        if self.m is None and rankings.direction == "i2t":
            return counts
        return np.full(len(counts), self.m or 1)


def _numbered(rankings: Rankings, candidates: NDArray[np.int64]) -> NDArray[np.int64]:
    """(queries, n) query * gallery + candidate, a number of its own for each candidate of each query."""
    return np.asarray(np.arange(len(candidates))[:, None] * rankings.gallery + candidates)


def _retrieved(rankings: Rankings, k: int, non_gt: bool) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """(queries, <= K) top K as :func:`_numbered`, without the positives if ``non_gt``, and which of them exist."""
    if non_gt:
        listed, exist = rankings.top_without_positives(k)
        return _numbered(rankings, listed), exist
    listed = rankings.top(k)
    return _numbered(rankings, listed), np.ones(listed.shape, dtype=np.bool_)


def _share(part: NDArray[np.float64], whole: NDArray[np.float64] | NDArray[np.int64]) -> NDArray[np.float64]:
    return 100.0 * np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)


def _without_ideal(best: NDArray[np.float64]) -> dict[str, int]:
    none = int((best.sum(axis=1) == 0).sum())
    return {"nothing relevant, counted 0": none} if none else {}


NSUM = Total("Nsum", (NCS(1), NCS(5), NCS(10)))
"""NCS@1 + NCS@5 + NCS@10 of both directions; 600 at most."""

NSUM_NON_GT = Total("Nsum", (NCS(1, non_gt=True), NCS(5, non_gt=True), NCS(10, non_gt=True)), "non_gt")
"""Nsum with the annotated positives removed."""
