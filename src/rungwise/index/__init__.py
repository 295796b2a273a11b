"""Vectors and what they belong to, kept in stores and made searchable."""

from rungwise.index.exact import ExactStore
from rungwise.index.hits import CaptionHit, Hit
from rungwise.index.index import Index
from rungwise.index.items import Item
from rungwise.index.searcher import Searcher
from rungwise.index.storage import Manifest
from rungwise.index.store import WORDS, Batch, Found, Row, Store, StoreFacts
from rungwise.index.where import Both, Condition, Either, Not, Where

__all__ = [
    "WORDS",
    "Batch",
    "Both",
    "CaptionHit",
    "Condition",
    "Either",
    "ExactStore",
    "Found",
    "Hit",
    "Index",
    "Item",
    "Manifest",
    "Not",
    "Row",
    "Searcher",
    "Store",
    "StoreFacts",
    "Where",
]
