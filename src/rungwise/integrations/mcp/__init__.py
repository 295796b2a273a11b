"""Model Context Protocol: search of an index as tools for an assistant, over standard streams and over HTTP."""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
