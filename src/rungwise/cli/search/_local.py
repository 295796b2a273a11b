"""``rungwise search`` in an index of this machine, or in one in a bucket."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rungwise.calibration import RUNGS
from rungwise.cli.search._reasons import HITS, check_explains, reasons_of
from rungwise.cli.search._render import SearchedPage, SearchOutput
from rungwise.data.files import PackedPicture, Picture, TarMember
from rungwise.data.pictures import picture_bytes
from rungwise.index import (
    LESS,
    CaptionHit,
    End,
    GivenVector,
    Index,
    Like,
    Query,
    Searcher,
    SearchOptions,
    Term,
    parse_query,
    parse_where,
)
from rungwise.jobs import near_words, read_model, read_model_of, say, say_cut

if TYPE_CHECKING:
    from rungwise.cli.search._options import SearchCommand
    from rungwise.index.filters import UnderstoodWhere
    from rungwise.models import PairScorer


def search(asked: SearchCommand) -> SearchOutput:
    """Search an index.

    Raises:
        UserError: If there is no index, the query or the filter is invalid, or a file cannot be read.
    """
    typed_where = None if asked.where is None else parse_where(asked.where)
    typed = parse_query(asked.query) if asked.query is not None else None
    place: Any = asked.index if "://" in asked.index else Path(asked.index)
    index = Index.open(place)
    where = None if typed_where is None else index.understood(typed_where)  # before the model, which may take long
    if typed is None and not (asked.image or asked.like or asked.unlike):
        return _listed(asked, index, where)
    model = read_model_of(index, asked.model, asked.device, altered=asked.altered_model)
    searcher = Searcher(index, model, meaning=near_words())
    if line := index.manifest.stand_in(model):
        say(line)
    given = [GivenVector(searcher.encode_picture(file), str(file)) for file in asked.image]
    terms = [*(() if typed is None else typed.terms), *map(Term, given), *(Term(Like(one)) for one in asked.like)]
    terms += [Term(Like(one), -LESS) for one in asked.unlike]
    query = Query(tuple(terms), () if typed is None else typed.notes)
    say_cut(model, query.texts)
    scorer = None if asked.rerank is None else read_model(asked.rerank, asked.device, altered=asked.altered_model)
    if asked.why and scorer is not None:
        check_explains(scorer)
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
    hits = _shown(index, [(hit.id, hit.score) for hit in answer.hits], answer.end)
    return SearchOutput(
        query=asked.query or "",
        hits=_with_reasons(hits, index, scorer, query) if asked.why and scorer is not None else hits,
        reading=answer.reading,
        unknown=tuple(map(str, answer.unknown)),
        unknown_words=tuple((one.word, tuple(one.near)) for one in answer.unknown),
        notes=answer.notes,
        folded=answer.folded,
        captions=tuple((one.text, one.score) for one in captions),
        more=answer.more,
        first=asked.offset + 1,
        end=answer.end,
    )


def _listed(asked: SearchCommand, index: Index, where: UnderstoodWhere | None) -> SearchOutput:
    """Pictures that fulfil a filter, the newest first."""
    ids = index.newest(asked.k + 1, asked.offset, where)
    return SearchOutput(
        query="",
        notes=() if where is None else where.notes,
        hits=_shown(index, [(one, None) for one in ids[: asked.k]]),
        more=len(ids) > asked.k,
        first=asked.offset + 1,
    )


def _shown(index: Index, found: list[tuple[str, float | None]], end: End | None = None) -> tuple[SearchedPage, ...]:
    items = index.found([one for one, _ in found])
    judged = [(None, None)] * len(found) if end is None else zip(end.rungs, end.degrees, strict=True)
    return tuple(
        SearchedPage(
            id=one,
            path=None if items[one].path is None else str(items[one].path),
            score=score,
            captions=items[one].captions,
            columns=items[one].columns,
            content=_reader(items[one].path),
            file_name=_file_name(items[one].path, one),
            packed=isinstance(items[one].path, PackedPicture),
            rung=rung,
            degree=degree,
            names=RUNGS if end is None else end.names,
        )
        for (one, score), (rung, degree) in zip(found, judged, strict=True)
        if one in items
    )


def _with_reasons(
    hits: tuple[SearchedPage, ...], index: Index, scorer: PairScorer, query: Query
) -> tuple[SearchedPage, ...]:
    """The hits, the first ones with where the words were found in them."""
    items = index.found([hit.id for hit in hits[:HITS]])
    first = (replace(hit, why=reasons_of(scorer, items[hit.id].path, query.texts)) for hit in hits[:HITS])
    return *first, *hits[HITS:]


def _reader(picture: Picture | None) -> Any:
    return None if picture is None else lambda: picture_bytes(picture)


def _file_name(picture: Picture | None, item_id: str) -> str:
    if isinstance(picture, TarMember):
        return picture.name
    return item_id if picture is None or isinstance(picture, PackedPicture) else picture.name
