"""Evaluation: named protocols, results that say what they are, tables, reports, published rows.

Words, which the modules keep to:

* *evaluate*: numbers of a model's rankings, as a :class:`Result`; the pass over the scores is *measured* in
  :mod:`rungwise.metrics`;
* *diagnose*: what lies behind the numbers, query by query, as :class:`Diagnostics`; a report shows both;
* *compare*: two results of the same queries;
* :class:`RankedLists` are rankings that come as lists in files, :class:`Reranked` those of two models one after the
  other; *top candidates* are the first candidates that any scores put before a query;
* *judge* is what people do, whose judgements :mod:`rungwise.relevance.human` reads. What a collection holds is
  *inspected* (:mod:`rungwise.data.inspection`), and what degrees of relevance look like is *described*
  (:mod:`rungwise.relevance.describe`).
"""

from rungwise.evaluation.by_class import ByClass, ClassNumbers, by_class
from rungwise.evaluation.called_right import CalledRight, read_called_right
from rungwise.evaluation.changes import render_change
from rungwise.evaluation.compare import Comparison, Difference, compare
from rungwise.evaluation.diagnostics import (
    Diagnostics,
    diagnose,
    false_negatives_by_gallery,
    in_positions_of_data,
)
from rungwise.evaluation.evaluate import DEFAULT_MEASURES, evaluate, evaluate_with_people
from rungwise.evaluation.false_negatives import FalseNegative, find_false_negatives, write_false_negatives
from rungwise.evaluation.intervals import Interval
from rungwise.evaluation.judging import Judging
from rungwise.evaluation.positives import positives_from_json, positives_from_labels
from rungwise.evaluation.printed_tables import matching, table_named, tables_of
from rungwise.evaluation.protocols import PROTOCOLS, Fold, Protocol, protocol_named
from rungwise.evaluation.published import PAPERS, PublishedRow, printed, published, published_beside
from rungwise.evaluation.ranked_lists import RankedLists, read_ranked_lists
from rungwise.evaluation.report import report_page
from rungwise.evaluation.reranked import Reranked
from rungwise.evaluation.result import Reranking, Result
from rungwise.evaluation.scores import similarity_source
from rungwise.evaluation.sharded import Shards
from rungwise.evaluation.tables import card_facts, format_result, render_by_class, render_published, render_table

__all__ = [
    "DEFAULT_MEASURES",
    "PAPERS",
    "PROTOCOLS",
    "ByClass",
    "CalledRight",
    "ClassNumbers",
    "Comparison",
    "Diagnostics",
    "Difference",
    "FalseNegative",
    "Fold",
    "Interval",
    "Judging",
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
    "read_called_right",
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
