"""The layouts in which pictures and captions lie on disk, one reader each."""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
