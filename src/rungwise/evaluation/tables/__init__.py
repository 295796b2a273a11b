"""Results as tables, alone and beside the rows that papers print."""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
