"""The generated world: scenes, their captions, their pictures, and their exact relevance."""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
