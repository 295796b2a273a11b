"""Indexes: vectors of pictures and captions in stores, and the searches over them."""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
