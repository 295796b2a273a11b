"""From the scores of one query to degrees of relevance, rungs, and the place where relevance ends."""

from __future__ import annotations

from rungwise.calibration.judgement import BEYOND, RUNGS, Background, Judgement, Known

__all__ = ["BEYOND", "RUNGS", "Background", "Judgement", "Known"]
