"""Calibration: from the scores of one query to degrees of relevance, rungs, and the place where relevance ends."""

from __future__ import annotations

from rungwise.calibration.baselines import FlatThreshold, LargestGap, Oracle, ShareOfBest, TopK
from rungwise.calibration.calibration import Calibration, Informed
from rungwise.calibration.judgement import BEYOND, RUNGS, Background, Known, QueryJudgement
from rungwise.calibration.learning.fitting import FEWEST_QUERIES
from rungwise.calibration.unrelated_standard import UNRELATED

__all__ = [
    "BEYOND",
    "FEWEST_QUERIES",
    "RUNGS",
    "UNRELATED",
    "Background",
    "Calibration",
    "FlatThreshold",
    "Informed",
    "Known",
    "LargestGap",
    "Oracle",
    "QueryJudgement",
    "ShareOfBest",
    "TopK",
]
