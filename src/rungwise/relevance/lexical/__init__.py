"""Degrees from words: n-grams, their weights, and all pairs at once."""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
