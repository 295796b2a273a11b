"""Indexes: vectors of pictures and captions in stores, and the searches over them."""

from rungwise.index.answers import Answer, CaptionHit, End, Hit, SearchOptions
from rungwise.index.filters.conditions import Both, Condition, Either, Not, Where
from rungwise.index.filters.parser import WhereError, check_columns, parse_where, write_where
from rungwise.index.index import Index
from rungwise.index.items import Item
from rungwise.index.layout.feedback import Grade, Grades
from rungwise.index.layout.manifest import Manifest
from rungwise.index.query.parser import parse_query
from rungwise.index.query.query import LESS, GivenPicture, GivenVector, Like, Query, Term, Words
from rungwise.index.query.unknown_words import Meaning, UnknownWord
from rungwise.index.searcher import Searcher
from rungwise.index.stores.base import WORDS, Row, Store, StoreBatch, StoreFacts, StoreHits
from rungwise.index.stores.exact.store import ExactStore
from rungwise.index.stores.lance.store import LanceStore
from rungwise.index.stores.milvus.store import MilvusStore

__all__ = [
    "LESS",
    "WORDS",
    "Answer",
    "Both",
    "CaptionHit",
    "Condition",
    "Either",
    "End",
    "ExactStore",
    "GivenPicture",
    "GivenVector",
    "Grade",
    "Grades",
    "Hit",
    "Index",
    "Item",
    "LanceStore",
    "Like",
    "Manifest",
    "Meaning",
    "MilvusStore",
    "Not",
    "Query",
    "Row",
    "SearchOptions",
    "Searcher",
    "Store",
    "StoreBatch",
    "StoreFacts",
    "StoreHits",
    "Term",
    "UnknownWord",
    "Where",
    "WhereError",
    "Words",
    "check_columns",
    "parse_query",
    "parse_where",
    "write_where",
]
