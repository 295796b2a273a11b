"""Results, runs and folders of seeds beside each other: compared, in tables and in plots."""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
