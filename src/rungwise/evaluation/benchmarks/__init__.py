"""Benchmarks of questions with their own candidates: Winoground, SugarCrepe, CIRCO, and files in MMEB's layout."""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
