"""Degrees from scene graphs: which facts of one caption others state too."""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
