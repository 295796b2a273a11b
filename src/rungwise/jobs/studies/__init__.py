"""Studies: many runs from one file, trained, chosen and measured."""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
