"""Grading: a local page that asks people how well captions describe pictures, and stores their judgements.

They are written to a judgement file (:mod:`rungwise.relevance.human.log`), which evaluation and training read.
"""
