"""Vectors and what they belong to, made searchable."""

from rungwise.index.embedded import Index
from rungwise.index.hits import CaptionHit, Hit, Hits
from rungwise.index.items import Item
from rungwise.index.model import EmbeddingModel, EncodedPictures

__all__ = ["CaptionHit", "EmbeddingModel", "EncodedPictures", "Hit", "Hits", "Index", "Item"]
