"""Relevance degrees R[image, caption]: from captions, models, labels and people.

Names are imported on first use, so that a light command starts fast.
"""

from rungwise._exports import exporting

__all__, __getattr__, __dir__ = exporting(__name__, __file__)
