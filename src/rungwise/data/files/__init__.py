"""Files that hold rows, texts and pictures of a collection, whatever its layout."""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
