"""Filters of the rows that may be found: conditions as values, as text, and on arrays."""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
