"""The folders of a collection: several that become one, and what stands in them in one digest."""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
