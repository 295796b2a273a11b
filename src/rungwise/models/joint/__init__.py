"""Joint embeddings (two encoders with a trained head each): new, started from others, or imported."""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
