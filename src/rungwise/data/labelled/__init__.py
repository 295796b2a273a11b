"""Features with class labels, as work on cross-modal retrieval publishes them."""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
