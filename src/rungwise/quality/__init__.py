"""Quality of a live index: what its approximate search misses, what that costs, which setting costs least.

What a search knows of captions as queries, by which a calibration learns, is here too (:class:`CaptionQueries`).

The room stands above :mod:`rungwise.index`, which knows nothing of measures, and above the rooms whose measures it
takes.
"""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
