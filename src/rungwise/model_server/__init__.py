"""A server that encodes pictures and texts for other programs, in the forms of Immich and of OpenAI."""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
