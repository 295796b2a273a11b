"""One place to search for adapters of other programs: an index of this machine, or a server of ours."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from rungwise.calibration import BEYOND
from rungwise.core import UserError
from rungwise.core.network import address_of
from rungwise.core.output import short_repr
from rungwise.data.files import PackedPicture
from rungwise.encoders.pretrained import ModelSource
from rungwise.index import Answer, GivenPicture, Hit, Index, Query, Searcher, Term, Where, parse_query, parse_where
from rungwise.models import load_dual_encoder
from rungwise.serving import Client
from rungwise.serving.schemas import answer_of_json

if TYPE_CHECKING:
    from rungwise.index import Item
    from rungwise.models import DualEncoder

_MTEB = "mteb:"
"""Prefix of the location of a model of mteb, as indexes have it."""


@dataclass(frozen=True)
class PlaceHit:
    """A picture that was found, as plain values.

    Attributes:
        id: Id of the picture in its collection.
        score: Similarity to the query; None where a filter alone was given.
        degree: Expected degree of relevance; None where the end was not judged.
        rung: 1, 2 or 3 as ``band`` names them, 4 after the end of relevance; None where the end was not judged.
        band: Name of the rung; empty after the end, and where the end was not judged.
        captions: Captions of the picture.
        columns: What is known of the file, and the user's columns; several texts are a list.
        path: Path of the file, or its address on the server; empty where the collection has no files.
        name: Name of the file, else the id.
        alike: Ids of near-duplicates for which the picture stands.
    """

    id: str
    score: float | None
    degree: float | None
    rung: int | None
    band: str
    captions: tuple[str, ...]
    columns: Mapping[str, Any]
    path: str
    name: str
    alike: tuple[str, ...] = ()

    __repr__ = short_repr

    @property
    def text(self) -> str:
        """What a program of texts reads of the picture: its captions, a line each, else the name of its file."""
        return "\n".join(self.captions) or self.name

    @property
    def metadata(self) -> dict[str, Any]:
        """All but the captions, by the names that every adapter uses."""
        return {
            "id": self.id,
            "score": self.score,
            "degree": self.degree,
            "rung": self.rung,
            "rung_name": self.band,
            "path": self.path,
            "alike": list(self.alike),
            "columns": dict(self.columns),
        }


@dataclass(frozen=True)
class PlaceHits:
    """What was found, best first.

    Attributes:
        hits: The pictures, up to the end of relevance unless those after it were asked for.
        shown: Number of pictures of the whole ranking before the end; None where the end was not judged.
        belief: Probability, 0..1, that the index holds a relevant picture; None where the end was not judged.
        source: One line that names what the end was judged by; empty where it was not judged.
        remark: One line where no picture stands out clearly; else empty.
        advice: Lines that say what to try where little or nothing was found.
        notes: Further lines for a person, words among them that the model does not know.
        more: Whether there are further pictures; of those before the end where those after it were left out.
    """

    hits: tuple[PlaceHit, ...]
    shown: int | None
    belief: float | None
    source: str
    remark: str
    advice: tuple[str, ...]
    notes: tuple[str, ...]
    more: bool

    __repr__ = short_repr


class SearchPlace:
    """Searches in an index of this machine or at a server, with answers of plain values.

    An index is opened, and its model loaded, by the first search. The folder of an index is looked at before each
    search: where it was changed, the new state is searched. Several threads may search; on this machine one after
    another.

    Args:
        place: Folder or address of an index, an :class:`~rungwise.index.Index`, a :class:`~rungwise.index.Searcher`, a
            :class:`~rungwise.serving.Client`, or the address of a server, which begins with http.
        token: Token of the server; else the one in its address, else that of ``RUNGWISE_TOKEN``.
        model: The model that built the index, or its location, if it has moved.
        device: Device of the model, such as ``"cpu"``; None takes ``cuda`` where there is one.

    Raises:
        UserError: If an argument is for the other kind of place, or the address is malformed.
    """

    def __init__(
        self,
        place: str | os.PathLike[str] | Index | Searcher | Client,
        *,
        token: str | None = None,
        model: str | DualEncoder | None = None,
        device: str | None = None,
    ) -> None:
        served = isinstance(place, Client) or (isinstance(place, str) and place.startswith(("http://", "https://")))
        if served and (model is not None or device is not None):
            raise UserError("model and device are of an index on this machine, and a server is given; leave them out")
        if not served and token is not None:
            raise UserError("token is of a server, and an index on this machine is given; leave it out")
        if isinstance(place, Searcher) and (model is not None or device is not None):
            raise UserError("a searcher has its model; leave model and device out")
        if not isinstance(place, str | os.PathLike | Index | Searcher | Client):
            raise UserError(
                f"place is of type {type(place).__name__}; give an index, its folder, or a server's address"
            )
        self.place = place
        self._model, self._device = model, device
        self._client: Client | None = None
        if served:
            self._client = place if isinstance(place, Client) else Client.at(str(place), token)
        self._index: Index | None = None
        self._searcher: Searcher | None = None
        self._lock = Lock()

    def search(
        self,
        text: str = "",
        k: int = 10,
        *,
        pictures: Sequence[str | os.PathLike[str] | bytes] = (),
        where: str | None = None,
        beyond: bool = False,
    ) -> PlaceHits:
        """Search by a text, by pictures, or by both; a filter alone gives the newest pictures that it lets through.

        Args:
            text: Query as people type it, such as ``"beach" - "people"``. It never opens files.
            k: Number of pictures at most.
            pictures: Pictures that results are to be like: paths of files, or bytes of files.
            where: Filter, such as ``year >= 2020 and tags has 'beach'``.
            beyond: Whether pictures after the end of relevance are given too.

        Raises:
            UserError: If nothing is asked for, the query or the filter is invalid, a picture or the index cannot be
                read, or the server cannot be reached or refuses.
        """
        text = text.strip()
        if not (text or pictures or where):
            raise UserError("the query is empty; write a few words about the picture")
        if k < 1:
            raise UserError(f"k is {k}; give at least 1")
        given = [one if isinstance(one, bytes) else Path(one) for one in pictures]
        if self._client is not None:
            return _cut(*_asked(self._client, text, k, given, where), beyond=beyond)
        with self._lock:
            return _cut(*self._found(text, k, given, where), beyond=beyond)

    def _found(
        self, text: str, k: int, pictures: Sequence[Path | bytes], where: str | None
    ) -> tuple[Answer, list[PlaceHit]]:
        filtered = None if not where else parse_where(where)
        if not (text or pictures):
            index = self._opened()
            understood = index.understood(filtered or Where())
            ids = index.newest(k + 1, 0, understood)
            hits = tuple(Hit(one, math.nan) for one in ids[:k])
            answer = Answer(hits, notes=understood.notes, more=len(ids) > k)
        else:
            searcher = self._opened_searcher()
            index = searcher.index
            typed = parse_query(text, pictures=False) if text else None
            likes = [Term(GivenPicture(one, _called(one, number))) for number, one in enumerate(pictures, 1)]
            query = Query((*(typed.terms if typed else ()), *likes), typed.notes if typed else ())
            answer = searcher.search(query, k, where=filtered)
        items = index.found([hit.id for hit in answer.hits])
        return answer, [_of_item(answer, place, items.get(hit.id)) for place, hit in enumerate(answer.hits)]

    def _opened(self) -> Index:
        """The index in its newest state."""
        if isinstance(self.place, Index | Searcher):
            return self.place if isinstance(self.place, Index) else self.place.index
        index = self._index
        # Of one on other machines this is not asked: it would take a request for each search.
        if index is None or (not (index.folder is None or address_of(index.folder)) and index.is_replaced()):
            index = self._index = _open(self.place)
        return index

    def _opened_searcher(self) -> Searcher:
        """The searcher of the index in its newest state; its model is loaded once."""
        if isinstance(self.place, Searcher):
            return self.place
        index, before = self._opened(), self._searcher
        if before is not None and before.index is index:
            return before
        if before is not None and before.index.manifest.models & index.manifest.models:
            self._searcher = before.on(index)
        else:
            self._searcher = Searcher(index, _model_of(index, self._model, self._device))
        return self._searcher


def _open(place: Any) -> Index:
    return Index.open(place if "://" in str(place) else Path(place))


def _model_of(index: Index, given: str | DualEncoder | None, device: str | None) -> DualEncoder:
    """The model that is given, else the one at the place that the index names."""
    if given is not None and not isinstance(given, str):
        return given
    place = given or index.manifest.model_location
    if not place:
        raise UserError("the index does not say where its model is; give it: model=")
    if place.startswith(_MTEB):
        from rungwise.integrations.mteb import load_mteb

        return load_mteb(place.removeprefix(_MTEB), device)
    try:
        return load_dual_encoder(place, device)
    except UserError as error:
        gone = given is None and ModelSource.parse(place) is None and not Path(place).exists()
        raise UserError(f"{error}; if the model has moved, give its place: model=") if gone else error from None


def _called(picture: Path | bytes, number: int) -> str:
    return str(picture) if isinstance(picture, Path) else f"{number} in memory"


def _asked(
    client: Client, text: str, k: int, pictures: Sequence[Path | bytes], where: str | None
) -> tuple[Answer, list[PlaceHit]]:
    """Ask a server, whose answer has the hits after the end, too."""
    found = client.search(text, k, where=where or "", pictures=pictures, everything=True)
    with client.reading_answers():
        answer = answer_of_json(found)
        return answer, [_of_json(client, answer, place, hit) for place, hit in enumerate(found["hits"])]


def _of_item(answer: Answer, place: int, item: Item | None) -> PlaceHit:
    """A hit of an index here; one that was removed since the answer has nothing but its id."""
    hit = answer.hits[place]
    if item is None:
        return _hit(answer, place, (), {}, "", hit.id)
    file = item.path.file if isinstance(item.path, PackedPicture) else item.path
    name = item.columns.get("file") or (hit.id if file is None else file.name)
    return _hit(answer, place, item.captions, item.columns, "" if item.path is None else str(item.path), str(name))


def _of_json(client: Client, answer: Answer, place: int, hit: Mapping[str, Any]) -> PlaceHit:
    columns = dict(hit["columns"])
    address = client.address_of(str(hit["id"])) if hit["has_file"] else ""
    name = str(columns.get("file") or hit["id"])
    return _hit(answer, place, tuple(map(str, hit["captions"])), columns, address, name)


def _hit(
    answer: Answer, place: int, captions: tuple[str, ...], columns: Mapping[str, Any], path: str, name: str
) -> PlaceHit:
    hit, end = answer.hits[place], answer.end
    return PlaceHit(
        id=hit.id,
        score=None if math.isnan(hit.score) else hit.score,
        degree=None if end is None else end.degrees[place],
        rung=None if end is None else end.rungs[place],
        band="" if end is None else end.band(place),
        captions=captions,
        columns={one: list(value) if isinstance(value, tuple) else value for one, value in columns.items()},
        path=path,
        name=name,
        alike=answer.folded.get(hit.id, ()),
    )


def _cut(answer: Answer, hits: Sequence[PlaceHit], *, beyond: bool) -> PlaceHits:
    """The list up to the end, unless what comes after it is asked for."""
    end = answer.end
    before = [hit for hit in hits if beyond or hit.rung is None or hit.rung < BEYOND]
    more = answer.more and (beyond or end is None or end.shown > len(hits))
    return PlaceHits(
        hits=tuple(before),
        shown=None if end is None else end.shown,
        belief=None if end is None else end.belief,
        source="" if end is None else end.source,
        remark="" if end is None else end.remark,
        advice=() if end is None else end.advice,
        notes=(*map(str, answer.unknown), *answer.notes),
        more=more,
    )
