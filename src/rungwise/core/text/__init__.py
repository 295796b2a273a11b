"""Text functions that take linear time, and the order and names in which people write text."""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
