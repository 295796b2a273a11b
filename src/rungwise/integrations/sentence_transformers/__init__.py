"""sentence-transformers: losses by degrees for its trainers, and an evaluator with the measures of rungwise."""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
