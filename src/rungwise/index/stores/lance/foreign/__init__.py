"""Tables of LanceDB that somebody else made, read and never written."""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
