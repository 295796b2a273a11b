"""Batches: which pairs meet, and how relevant they are to each other."""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
