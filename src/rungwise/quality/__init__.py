"""Quality of a live index: what its approximate search misses, what that costs, and which setting costs least.

The room stands above :mod:`rungwise.index`, which knows nothing of measures, and above the rooms whose measures it
takes.
"""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
