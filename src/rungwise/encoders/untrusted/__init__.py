"""Allowed settings of networks and tokenizers in a stranger's files: listed by name and type, each within limits."""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
