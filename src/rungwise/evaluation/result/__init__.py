"""What an evaluation gives: numbers that say what they are of, whole files of them, and small ones."""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
