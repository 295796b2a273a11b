"""Search in an index of this machine, or in one in a bucket."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from rungwise.core import UserError
from rungwise.core.network import address_of
from rungwise.core.output import short_repr
from rungwise.index import (
    CAPTIONS,
    LESS,
    Answer,
    GivenVector,
    Hit,
    Index,
    Like,
    Manifest,
    Query,
    Searcher,
    SearchOptions,
    Term,
    parse_query,
    parse_where,
)
from rungwise.jobs._job import function_of
from rungwise.jobs._models import near_words, read_dual_encoder, read_model, read_model_of, say_cut
from rungwise.jobs._python_values import refused
from rungwise.jobs._terminal import say
from rungwise.jobs.searches._options import TABLE, Search, check

if TYPE_CHECKING:
    from rungwise.data.files import Picture
    from rungwise.index import CaptionHit
    from rungwise.index.stores.lance.foreign import ForeignTable
    from rungwise.models import DualEncoder, PairScorer

_OPENED: WeakKeyDictionary[Index, Searcher] = WeakKeyDictionary()
"""Searchers of indexes that were opened before: a model is loaded once."""


@dataclass(frozen=True)
class Found:
    """What a search found, with all that it is printed by.

    Attributes:
        index: The index.
        answer: The answer; a hit of a filter alone has no score (NaN).
        query: What was searched for; None where a filter alone was given.
        captions: Captions that are most like the one picture that was given.
        scorer: The model that ranked the first hits anew.
    """

    index: Index
    answer: Answer
    query: Query | None = None
    captions: tuple[CaptionHit, ...] = ()
    scorer: PairScorer | None = None

    __repr__ = short_repr


def found(asked: Search) -> Found:
    """Search an index.

    Raises:
        UserError: If there is no index, the query or the filter is invalid, or a file cannot be read.
    """
    check(asked)
    typed_where = None if asked.where is None else parse_where(asked.where)
    typed = parse_query(asked.query) if asked.query is not None else None
    if asked.is_table:
        index: Any = _table(asked)
    else:
        index = open_index(asked.index) if isinstance(asked.index, str) else asked.index
    if not isinstance(index, Index):
        raise refused("index", index, "an index, its folder, or the address of a server")
    where = None if typed_where is None else index.understood(typed_where)  # before the model, which may take long
    if typed is None and not (asked.image or asked.like or asked.unlike):
        ids = index.newest(asked.k + 1, asked.offset, where)
        hits = tuple(Hit(one, math.nan) for one in ids[: asked.k])
        return Found(index, Answer(hits, notes=() if where is None else where.notes, more=len(ids) > asked.k))
    searcher = _searcher(index, asked)
    model = searcher.model
    given = [GivenVector(searcher.encode_picture(one), _called(one, place)) for place, one in enumerate(asked.image, 1)]
    terms = [*(() if typed is None else typed.terms), *map(Term, given), *(Term(Like(one)) for one in asked.like)]
    terms += [Term(Like(one), -LESS) for one in asked.unlike]
    query = Query(tuple(terms), () if typed is None else typed.notes)
    say_cut(model, query.texts)
    scorer = None if asked.rerank is None else read_model(asked.rerank, asked.device, altered=asked.altered_model)
    options = SearchOptions(
        fold_duplicates=asked.fold,
        diversity=asked.diversity,
        words=asked.words,
        exact=asked.exact,
        rerank=scorer,
        rerank_top=asked.rerank_top,
        end=asked.end == "on",
    )
    answer = searcher.search(query, asked.k, offset=asked.offset, where=where, options=options)
    captions: list[CaptionHit] = []
    if len(terms) == len(given) == 1:  # whoever gives one picture alone may want to know what it shows
        captions = searcher.captions_near(given[0].vector, asked.k)
    return Found(index, answer, query, tuple(captions), scorer)


def open_index(place: str | Path) -> Index:
    """Open an index that :func:`rungwise.build_index` or ``rungwise index`` made.

    It answers from the state in which it was opened, while others update its folder; where they overwrite it, it may be
    refused. Its method ``is_replaced()`` tells whether there is a newer state, which ``open_index`` opens.

    Args:
        place: Folder, or address such as ``s3://BUCKET/PREFIX``.

    Raises:
        UserError: If there is no index.

    >>> import rungwise
    >>> rungwise.open_index("nowhere.index")
    Traceback (most recent call last):
    rungwise.core.UserError: nowhere.index: ...
    """
    if not isinstance(place, str | os.PathLike):
        raise refused("place", place, "the folder or address of an index")
    if str(place).startswith(("http://", "https://")):
        raise UserError(f"{place}: is a server; give the address to rungwise.search, or the folder of its index here")
    where: Any = place if "://" in str(place) else Path(place)
    return Index.open(where)


def answered(asked: Search) -> Answer:
    """Search an index, or ask its server."""
    if asked.is_remote:
        from rungwise.jobs.searches._server_search import ask_server

        check(asked)
        return ask_server(asked).answer
    if not _is_changed(asked.index):
        return found(asked).answer
    remedy = "the index was changed since it was opened; open it again"
    say(remedy)
    try:
        return found(asked).answer
    except UserError as error:  # an old state whose files are gone looks damaged
        raise UserError(f"{error}; {remedy}") from None


def _is_changed(index: Index | str) -> bool:
    """Whether an opened index is no longer what its folder holds; of one on other machines this is not asked."""
    if not isinstance(index, Index) or index.folder is None or address_of(index.folder):
        return False
    return index.is_replaced()


def _table(asked: Search) -> Index:
    """A table of LanceDB that somebody else made, as an index that is only read."""
    from rungwise.index.stores.lance.foreign import ForeignTable, NoRows

    if asked.model is None and not asked.compares_nothing:
        raise UserError(f"{asked.index}: name the model whose vectors it holds: --model")
    address = str(asked.index).removeprefix(TABLE)
    item = {CAPTIONS: [], "rungwise.item": {"path": None, "caption_ids": []}}
    store = ForeignTable(address, vectors=asked.vectors, ids=asked.id, item=item)
    fingerprint = ""
    if asked.model is not None:
        asked.model = model = read_dual_encoder(asked.model, asked.device, altered=asked.altered_model)
        _check_compares(asked, store, model)
        store.similarity, fingerprint = model.similarity, model.fingerprint
    if store.nulls:
        say(f"{store.nulls} of {store.nulls + store.count()} rows have no vector and are never found")
    no_captions = NoRows(store.dimension, store.similarity)
    return Index(Manifest(str(asked.index), fingerprint, "", store.dimension, store="lancedb"), store, no_captions)


def _check_compares(asked: Search, table: ForeignTable, model: DualEncoder) -> None:
    """Refuse a model whose vectors the table cannot hold, or whose similarity LanceDB does not have."""
    if model.dimension != table.dimension:
        raise UserError(
            f"{asked.index}: its vectors have dimension {table.dimension}, and those of the model {model.dimension};"
            " name the model that made them, or another column: --vectors"
        )
    if model.similarity.metric is None:
        raise UserError(f"{asked.index}: LanceDB cannot compare as this model does; name one that compares by cosine")


def _called(picture: Picture, place: int) -> str:
    """What a picture is called in the sentence on a query: its path, or its place among those that were given."""
    return str(picture) if isinstance(picture, Path) else f"{place} in memory"


def _searcher(index: Index, asked: Search) -> Searcher:
    """The searcher of an index, which is kept while the index is, unless options of the model are given."""
    usual = asked.model is None and asked.device is None and not asked.altered_model
    if usual and (kept := _OPENED.get(index)) is not None:
        return kept
    model = read_model_of(index, asked.model, asked.device, altered=asked.altered_model)
    searcher = Searcher(index, model, meaning=near_words())
    if line := index.manifest.stand_in(model):
        say(line)
    if usual:
        _OPENED[index] = searcher
    return searcher


search = function_of(
    "search",
    Search,
    answered,
    """
    An index that is given opened keeps its model for the next search. It is searched in the state in which it was
    opened; a line says so if its folder was changed since.

    Returns:
        Answer with hits, best first, their bands, and where relevance ends.

    Raises:
        UserError: If there is no index or server, it refuses, the query or the filter is invalid, or a file cannot be
            read.

    >>> rungwise.search("photos.index", "two dogs running", k=20)  # doctest: +SKIP
    """,
)
