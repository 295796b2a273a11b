"""Stores of vectors and records: the contract, and one room for each engine."""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
