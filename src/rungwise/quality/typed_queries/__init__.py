"""Queries as people type them, made of the captions and columns of a collection: what a calibration learns from."""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
