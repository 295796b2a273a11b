"""Queries: words, pictures and vectors, each with a weight, and the text that people type."""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
