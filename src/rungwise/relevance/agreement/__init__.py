"""How well degrees agree with people's judgements, and people with each other."""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
