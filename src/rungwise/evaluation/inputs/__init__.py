"""What is measured: similarities, embeddings and ranked lists of any model, read and checked."""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
