"""Search engines that other programs filled: their lists are read for queries, and nothing is written.

Each class asks one engine for the nearest vectors, through the engine's own client, and has the methods of
:class:`rungwise.quality.Engine`. Scores are similarities: a distance is turned round.
"""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
