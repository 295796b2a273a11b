"""Evaluation: named protocols, results that say what they are, tables, reports, published rows.

Words, which the modules keep to:

* *evaluate*: numbers of a model's rankings, as a :class:`Result`; the pass over the scores is *measured* in
  :mod:`rungwise.metrics`;
* *diagnose*: what lies behind the numbers, query by query, as :class:`Diagnostics`; a report shows both;
* *compare*: two results of the same queries;
* :class:`RankedLists` are rankings that come as lists in files, :class:`Reranked` those of two models one after the
  other; *top candidates* are the first candidates that any scores put before a query;
* *judge* is what people do, whose judgements :mod:`rungwise.relevance.human.source` reads. What a collection holds is
  *inspected* (:mod:`rungwise.data.inspection`), and what degrees of relevance look like is *described*
  (:mod:`rungwise.relevance.description.describe`).
"""

from rungwise.evaluation.analysis.diagnostics import (
    Diagnostics,
    diagnose,
    false_negatives_by_gallery,
    in_positions_of_data,
)
from rungwise.evaluation.analysis.false_negatives import FalseNegative, find_false_negatives, write_false_negatives
from rungwise.evaluation.comparison import Comparison, Difference, compare
from rungwise.evaluation.evaluate import DEFAULT_MEASURES, evaluate, evaluate_with_people
from rungwise.evaluation.inputs.ranked_lists import RankedLists, read_ranked_lists
from rungwise.evaluation.inputs.scores import similarity_source
from rungwise.evaluation.inputs.shortlists import Reranked
from rungwise.evaluation.judgements.human_positives import HumanPositives, read_human_positives
from rungwise.evaluation.judgements.positives import positives_from_json, positives_from_labels
from rungwise.evaluation.judgements.record import JudgementRecord
from rungwise.evaluation.protocols import PROTOCOLS, Fold, Protocol, protocol_named
from rungwise.evaluation.report.page import report_page
from rungwise.evaluation.result import Reranking, Result
from rungwise.evaluation.sharding import Shards
from rungwise.evaluation.statistics.by_class import ByClass, ClassNumbers, by_class
from rungwise.evaluation.statistics.intervals import Interval
from rungwise.evaluation.tables.changes import render_change
from rungwise.evaluation.tables.printed import matching, table_named, tables_of
from rungwise.evaluation.tables.published_rows import PAPERS, PublishedRow, printed, published, published_beside
from rungwise.evaluation.tables.results import (
    card_facts,
    format_result,
    render_by_class,
    render_published,
    render_table,
)

__all__ = [
    "DEFAULT_MEASURES",
    "PAPERS",
    "PROTOCOLS",
    "ByClass",
    "ClassNumbers",
    "Comparison",
    "Diagnostics",
    "Difference",
    "FalseNegative",
    "Fold",
    "HumanPositives",
    "Interval",
    "JudgementRecord",
    "Protocol",
    "PublishedRow",
    "RankedLists",
    "Reranked",
    "Reranking",
    "Result",
    "Shards",
    "by_class",
    "card_facts",
    "compare",
    "diagnose",
    "evaluate",
    "evaluate_with_people",
    "false_negatives_by_gallery",
    "find_false_negatives",
    "format_result",
    "in_positions_of_data",
    "matching",
    "positives_from_json",
    "positives_from_labels",
    "printed",
    "protocol_named",
    "published",
    "published_beside",
    "read_human_positives",
    "read_ranked_lists",
    "render_by_class",
    "render_change",
    "render_published",
    "render_table",
    "report_page",
    "similarity_source",
    "table_named",
    "tables_of",
    "write_false_negatives",
]
