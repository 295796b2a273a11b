"""Relevance degrees R[image, caption]."""

from rungwise.relevance.base import Relevance

__all__ = ["Relevance"]
