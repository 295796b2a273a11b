"""Checks for what spoils training on a collection, measuring on it, or a run, each with a cure.

The checks of a run are loaded on first use, so that data are examined without torch.
"""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
