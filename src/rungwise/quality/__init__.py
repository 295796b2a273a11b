"""Quality of a live index: what its approximate search misses, what that costs, which setting costs least.

Queries as people type them, by which a calibration learns, are made in :mod:`rungwise.quality.typed_queries`.

The room stands above :mod:`rungwise.index`, which knows nothing of measures, and above the rooms whose measures it
takes.
"""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
