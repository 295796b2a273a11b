"""Files of saved degrees, of numbers that sources computed of captions, and of pair scores."""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
