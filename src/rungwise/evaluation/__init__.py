"""Evaluation: named protocols, results that say what they are, tables."""

from rungwise.evaluation.evaluate import DEFAULT_MEASURES, evaluate
from rungwise.evaluation.protocols import PROTOCOLS, Fold, Protocol, protocol_named
from rungwise.evaluation.result import Result
from rungwise.evaluation.tables import render_table

__all__ = [
    "DEFAULT_MEASURES",
    "PROTOCOLS",
    "Fold",
    "Protocol",
    "Result",
    "evaluate",
    "protocol_named",
    "render_table",
]
