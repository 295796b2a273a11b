"""From the hits of a store to the ranking that a person sees."""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
