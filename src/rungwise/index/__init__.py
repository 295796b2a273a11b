"""Vectors and what they belong to, kept in stores and made searchable."""

from rungwise.index.exact import ExactStore
from rungwise.index.hits import CaptionHit, Hit, Hits
from rungwise.index.index import Index
from rungwise.index.items import Item
from rungwise.index.searcher import Searcher
from rungwise.index.storage import Manifest
from rungwise.index.store import Batch, Found, Row, Store
from rungwise.index.where import Condition, Where

__all__ = [
    "Batch",
    "CaptionHit",
    "Condition",
    "ExactStore",
    "Found",
    "Hit",
    "Hits",
    "Index",
    "Item",
    "Manifest",
    "Row",
    "Searcher",
    "Store",
    "Where",
]
