"""Planning of a collection: the disk, memory, hours and machines that it takes, each with what was measured.

Importing it loads nothing heavy: the command line parses a :class:`Need` before it knows whether it is used.
"""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
