"""Measures of rankings: from similarities S and degrees of relevance R to values per query, and numbers of these.

Words, which the modules keep to:

* a *measure* is a value such as ``R@1``; it answers one value per query, and a number for all of them;
* :class:`Rankings` are a block of queries with everything that measures read of them;
* a *source* of similarity is where one pass reads S from (:mod:`rungwise.metrics._sources`);
* a *method* says where relevance ends for each query (:class:`rungwise.metrics.Ends`), for measures of that;
* ranks of single candidates, and the lists that are kept during a pass, are *counted*
  (:mod:`rungwise.metrics._counting`);
* :func:`rungwise.metrics.measure_all` makes the pass; :func:`rungwise.evaluation._evaluate` makes results
  of it.
"""

from __future__ import annotations

from collections.abc import Iterable

from rungwise.core import UserError
from rungwise.core.output import one_line
from rungwise.metrics._blocks import CheckedDegrees, Positions, as_floats, as_slice
from rungwise.metrics._classic import AP11, MAP, MRR, RSUM, MAPAtR, MeanR, MedR, P, R, Recall, RPrecision
from rungwise.metrics._correlation import CS, Kendall, Spearman
from rungwise.metrics._counting import RunningLists
from rungwise.metrics._cutting import BINS, ECE, Brier, CutF1, CutPrecision, CutRecall, NoneAUROC
from rungwise.metrics._ends import Ends, judged_by, name_of_ends
from rungwise.metrics._graded import NCS, NDCG, NSUM, NSUM_NON_GT, SR, DegreeCurves, JudgedAP, JudgedNDCG, MeanDegree
from rungwise.metrics._measures import CORRELATION, DEGREE, FRACTION, PERCENT, RANK, Measure, Total, families, parse_as
from rungwise.metrics._rankings import (
    DIRECTIONS,
    Direction,
    JudgedQueries,
    KeptLists,
    Positives,
    Rankings,
    Scores,
    positives_of,
    rank_all,
)
from rungwise.metrics._shards import QueryShard, ShardValues, measure_shard, put_together, shards_of
from rungwise.metrics._sources import (
    Divisible,
    EmbeddingSource,
    MatrixSource,
    Norms,
    ProductSource,
    SimilaritySource,
    TiledSource,
)
from rungwise.metrics._streaming import MeasureRequest, QueryValues, measure_all

FAMILIES: tuple[type[Measure], ...] = families()
"""Every family of per-query measures of this package, in the order in which help lists them."""

TOTALS: tuple[Total, ...] = (RSUM, NSUM, NSUM_NON_GT)
"""Sums of measures over both directions."""


def parse(text: str) -> Measure | Total:
    """Parse the printed form of a measure; a family is known as soon as its class is defined.

    A family that nobody has defined is looked for among those that installed packages offer.

    Raises:
        UserError: If there is none; the message lists what there is.

    >>> parse("SR@10(m=5)"), parse("MAP@R"), str(parse("Nsum(non_gt)"))
    (SR(k=10, m=5, non_gt=False, lists=None, any=False), MAPAtR(), 'Nsum(non_gt)')
    """
    return parse_as(text, TOTALS)


def parse_all(measures: Iterable[str | Measure | Total]) -> tuple[Measure | Total, ...]:
    """Measures from values and names alike, each once, in the given order; a single name is that one measure.

    Raises:
        UserError: If one is neither a known name nor a measure.

    >>> [str(measure) for measure in parse_all(["R@1", R(1), "MedR"])]
    ['R@1', 'MedR']
    >>> [str(measure) for measure in parse_all("rsum")]
    ['rsum']
    """
    if isinstance(measures, str):
        measures = (measures,)
    return tuple(dict.fromkeys(parse(one) if isinstance(one, str) else _checked(one) for one in measures))


def _checked(given: object) -> Measure | Total:
    """A measure as a value; UserError for anything else, such as a class of measures."""
    if isinstance(given, Measure | Total):
        return given
    what = f"the class {given.__name__}" if isinstance(given, type) else one_line(repr(given), 60)
    raise UserError(
        f"measures: {what} is no measure; give names such as 'R@1', or objects such as rungwise.metrics.R(1)",
        parameters={"measures:": "measures"},
    )


__all__ = [
    "AP11",
    "BINS",
    "CORRELATION",
    "CS",
    "DEGREE",
    "DIRECTIONS",
    "ECE",
    "FAMILIES",
    "FRACTION",
    "MAP",
    "MRR",
    "NCS",
    "NDCG",
    "NSUM",
    "NSUM_NON_GT",
    "PERCENT",
    "RANK",
    "RSUM",
    "SR",
    "TOTALS",
    "Brier",
    "CheckedDegrees",
    "CutF1",
    "CutPrecision",
    "CutRecall",
    "DegreeCurves",
    "Direction",
    "Divisible",
    "EmbeddingSource",
    "Ends",
    "JudgedAP",
    "JudgedNDCG",
    "JudgedQueries",
    "Kendall",
    "KeptLists",
    "MAPAtR",
    "MatrixSource",
    "MeanDegree",
    "MeanR",
    "Measure",
    "MeasureRequest",
    "MedR",
    "NoneAUROC",
    "Norms",
    "P",
    "Positions",
    "Positives",
    "ProductSource",
    "QueryShard",
    "QueryValues",
    "R",
    "RPrecision",
    "Rankings",
    "Recall",
    "RunningLists",
    "Scores",
    "ShardValues",
    "SimilaritySource",
    "Spearman",
    "TiledSource",
    "Total",
    "as_floats",
    "as_slice",
    "judged_by",
    "measure_all",
    "measure_shard",
    "name_of_ends",
    "parse",
    "parse_all",
    "positives_of",
    "put_together",
    "rank_all",
    "shards_of",
]
