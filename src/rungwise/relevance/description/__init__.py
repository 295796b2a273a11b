"""A source shown to a person: a sample of its degrees, and examples between two thresholds."""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
