"""Curves of systems: by epoch, by K, by rank and by a setting; as numbers first, then drawn by matplotlib."""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
