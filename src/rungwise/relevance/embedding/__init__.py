"""Degrees from vectors and models: of captions, of pairs of captions, of pictures."""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
