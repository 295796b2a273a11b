"""Vectors of a LanceDB table at hand: in memory, read block by block, or mapped from files with inverted lists."""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
