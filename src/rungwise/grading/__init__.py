"""Grading: a local page that asks people how well captions describe pictures, and stores their judgements.

They are written to a judgement file (:mod:`rungwise.relevance.human._log`), which evaluation and training read.
"""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
