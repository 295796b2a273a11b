"""Files beside pictures that say something of one picture each: captions, and what programs know of it."""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
