"""Measures of rankings: S and R in, one value per query out, numbers after."""

from __future__ import annotations

from collections.abc import Iterable

from rungwise.metrics.classic import MAP, MRR, RSUM, MAPAtR, MeanR, MedR, R, Recall, RPrecision
from rungwise.metrics.graded import CS, NCS, NDCG, NSUM, NSUM_NON_GT, SR, Kendall, Spearman
from rungwise.metrics.measures import Measure, Total, parse_as
from rungwise.metrics.rankings import DIRECTIONS, Direction, Rankings, rank_all

FAMILIES: tuple[type[Measure], ...] = (
    R,
    Recall,
    MedR,
    MeanR,
    MRR,
    MAP,
    MAPAtR,
    RPrecision,
    CS,
    SR,
    NCS,
    NDCG,
    Kendall,
    Spearman,
)
"""Every family of per-query measures, in the order in which help lists them."""

TOTALS: tuple[Total, ...] = (RSUM, NSUM, NSUM_NON_GT)
"""Sums over both directions."""


def parse(text: str) -> Measure | Total:
    """The measure that prints as ``text``.

    Raises:
        UserError: If there is none; the message lists what there is.

    >>> parse("SR@10(m=5)"), parse("MAP@R"), str(parse("Nsum(non_gt)"))
    (SR(k=10, m=5, non_gt=False, lists=None), MAPAtR(), 'Nsum(non_gt)')
    """
    return parse_as(text, FAMILIES, TOTALS)


def parse_all(measures: Iterable[str | Measure | Total]) -> tuple[Measure | Total, ...]:
    """Measures from values and names alike, each once, in the order given.

    >>> [str(measure) for measure in parse_all(["R@1", R(1), "MedR"])]
    ['R@1', 'MedR']
    """
    return tuple(dict.fromkeys(parse(one) if isinstance(one, str) else one for one in measures))


__all__ = [
    "CS",
    "DIRECTIONS",
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
    "Direction",
    "Kendall",
    "MAPAtR",
    "MeanR",
    "Measure",
    "MedR",
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
