"""Measures of rankings: from similarities S and degrees of relevance R to values per query, and numbers of these.

Words, which the modules keep to:

* a *measure* is a value such as ``R@1``; it answers one value per query, and a number for all of them;
* :class:`Rankings` are a block of queries with everything that measures read of them;
* a *source* of similarity is where one pass reads S from (:mod:`rungwise.metrics.sources`);
* a *method* says where relevance ends for each query (:class:`rungwise.metrics.ends.Ends`), for measures of that;
* ranks of single candidates, and the lists that are kept during a pass, are *counted*
  (:mod:`rungwise.metrics.counting`);
* :func:`rungwise.metrics.streaming.measure_all` makes the pass; :func:`rungwise.evaluation.evaluate` makes results
  of it.
"""

from __future__ import annotations

from collections.abc import Iterable

from rungwise.metrics.classic import AP11, MAP, MRR, RSUM, MAPAtR, MeanR, MedR, P, R, Recall, RPrecision
from rungwise.metrics.cutting import ECE, Brier, CutF1, CutPrecision, CutRecall, NoneAUROC
from rungwise.metrics.ends import Ends, JudgedQueries
from rungwise.metrics.graded import CS, NCS, NDCG, NSUM, NSUM_NON_GT, SR, Kendall, Spearman
from rungwise.metrics.measures import Measure, Total, families, parse_as
from rungwise.metrics.rankings import DIRECTIONS, Direction, Rankings, rank_all

FAMILIES: tuple[type[Measure], ...] = families()
"""Every family of per-query measures of this package, in the order in which help lists them."""

TOTALS: tuple[Total, ...] = (RSUM, NSUM, NSUM_NON_GT)
"""Sums of measures over both directions."""


def parse(text: str) -> Measure | Total:
    """Parse the printed form of a measure; a family is known as soon as its class is defined.

    Raises:
        UserError: If there is none; the message lists what there is.

    >>> parse("SR@10(m=5)"), parse("MAP@R"), str(parse("Nsum(non_gt)"))
    (SR(k=10, m=5, non_gt=False, lists=None), MAPAtR(), 'Nsum(non_gt)')
    """
    return parse_as(text, families(), TOTALS)


def parse_all(measures: Iterable[str | Measure | Total]) -> tuple[Measure | Total, ...]:
    """Measures from values and names alike, each once, in the given order; a single name is that one measure.

    >>> [str(measure) for measure in parse_all(["R@1", R(1), "MedR"])]
    ['R@1', 'MedR']
    >>> [str(measure) for measure in parse_all("rsum")]
    ['rsum']
    """
    if isinstance(measures, str):
        measures = (measures,)
    return tuple(dict.fromkeys(parse(one) if isinstance(one, str) else one for one in measures))


__all__ = [
    "AP11",
    "CS",
    "DIRECTIONS",
    "ECE",
    "FAMILIES",
    "MAP",
    "MRR",
    "NCS",
    "NDCG",
    "NSUM",
    "NSUM_NON_GT",
    "RSUM",
    "SR",
    "TOTALS",
    "Brier",
    "CutF1",
    "CutPrecision",
    "CutRecall",
    "Direction",
    "Ends",
    "JudgedQueries",
    "Kendall",
    "MAPAtR",
    "MeanR",
    "Measure",
    "MedR",
    "NoneAUROC",
    "P",
    "R",
    "RPrecision",
    "Rankings",
    "Recall",
    "Spearman",
    "Total",
    "parse",
    "parse_all",
    "rank_all",
]
