"""Vectors and what they belong to, kept in stores and made searchable."""

from rungwise.index.answers import Answer, End, SearchOptions
from rungwise.index.exact import ExactStore
from rungwise.index.grades import Grade, Grades
from rungwise.index.hits import CaptionHit, Hit
from rungwise.index.index import Index
from rungwise.index.items import Item
from rungwise.index.lance import LanceStore
from rungwise.index.milvus import MilvusStore
from rungwise.index.queries import LESS, Given, GivenVector, Like, Query, Term, Words
from rungwise.index.query_text import parse_query
from rungwise.index.searcher import Searcher
from rungwise.index.storage import Manifest
from rungwise.index.store import WORDS, Batch, Found, Row, Store, StoreFacts
from rungwise.index.unknown_words import Meaning, UnknownWord
from rungwise.index.where import Both, Condition, Either, Not, Where
from rungwise.index.where_text import WhereError, check_columns, parse_where, write_where

__all__ = [
    "LESS",
    "WORDS",
    "Answer",
    "Batch",
    "Both",
    "CaptionHit",
    "Condition",
    "Either",
    "End",
    "ExactStore",
    "Found",
    "Given",
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
    "StoreFacts",
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
