"""What an evaluation writes for others: one HTML page that needs no other file, and files for TREC's programs."""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
