"""``rungwise search`` in an index of this machine, or in one in a bucket."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rungwise.calibration import RUNGS
from rungwise.cli.search._reasons import HITS, check_explains, reasons_of
from rungwise.cli.search._render import SearchedPage, SearchOutput
from rungwise.data.files import PackedPicture, Picture, TarMember
from rungwise.data.pictures import picture_bytes
from rungwise.index import End, Index, Query
from rungwise.jobs import read_model
from rungwise.jobs.searches import found

if TYPE_CHECKING:
    from rungwise.cli.search._options import SearchCommand
    from rungwise.models import PairScorer


def search(asked: SearchCommand) -> SearchOutput:
    """Search an index.

    Raises:
        UserError: If there is no index, the query or the filter is invalid, or a file cannot be read.
    """
    if asked.why and asked.rerank is not None:
        asked.rerank = read_model(asked.rerank, asked.device, altered=asked.altered_model)
        check_explains(asked.rerank)
    one = found(asked)
    answer, index = one.answer, one.index
    hits = _shown(index, [(hit.id, None if math.isnan(hit.score) else hit.score) for hit in answer.hits], answer.end)
    if asked.why and one.scorer is not None and one.query is not None:
        hits = _with_reasons(hits, index, one.scorer, one.query)
    return SearchOutput(
        query=asked.query or "",
        hits=hits,
        reading=answer.reading,
        unknown=tuple(map(str, answer.unknown)),
        unknown_words=tuple((one.word, tuple(one.near)) for one in answer.unknown),
        notes=answer.notes,
        folded=answer.folded,
        captions=tuple((one.text, one.score) for one in one.captions),
        more=answer.more,
        first=asked.offset + 1,
        end=answer.end,
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
