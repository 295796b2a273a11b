"""Systems compared on the same queries: differences, tests over pictures and over seeds, and their text."""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
