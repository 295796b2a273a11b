"""Calibration: from the scores of one query to degrees of relevance, rungs, and the place where relevance ends."""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
