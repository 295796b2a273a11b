"""Files and folders that appear as a whole or not at all, with seals and locks, and synced before they are reported."""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
