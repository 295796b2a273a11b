"""Access control: who is let in, and how much of the server a client may hold."""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
