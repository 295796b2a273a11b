"""Models without torch: ONNX graphs, written, checked and run."""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
