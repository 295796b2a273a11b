"""Image side and text side, each from the user's data to vectors."""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
