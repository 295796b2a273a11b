"""Queries that fit nothing: texts, and the standard that their scores set for what stands out."""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
