"""What stands first in a model's rankings, and what is wrong with it."""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
