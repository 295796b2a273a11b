"""Searches over HTTP, from their parameters to their answers, in the server's process or in others beside it."""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
