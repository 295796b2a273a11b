"""Sources made of sources: sums, maxima, cascades, and what people's grades fit."""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
