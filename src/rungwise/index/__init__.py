"""Vectors and what they belong to, made searchable."""

from rungwise.index.embedded import CaptionHit, Hit, Hits, Index, Item
from rungwise.index.model import EmbeddingModel, EncodedPictures

__all__ = ["CaptionHit", "EmbeddingModel", "EncodedPictures", "Hit", "Hits", "Index", "Item"]
