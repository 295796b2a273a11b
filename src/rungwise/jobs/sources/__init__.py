"""Degrees of relevance by the name of a source."""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
