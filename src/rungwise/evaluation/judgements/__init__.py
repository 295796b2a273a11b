"""What counts as right besides the annotation: human judgements and shared class labels."""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
