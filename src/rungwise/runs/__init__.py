"""What runs, seeds and tables are about: results kept in the folder of a run, and runs beside each other."""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
