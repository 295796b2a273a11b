"""Options and answers of a search through a Searcher."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field
from html import escape
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from rungwise.calibration import BEYOND, RUNGS
from rungwise.core import UserError
from rungwise.core.formats import IN_FILE, CheckedJson, Number
from rungwise.core.output import (
    MOST_LINES,
    WIDTH,
    InTables,
    TextTable,
    cut,
    embedded_jpeg,
    frame_of,
    notebook_html,
    one_line,
    short_repr,
)
from rungwise.index.query import UnknownWord
from rungwise.index.stores import StoreHits

if TYPE_CHECKING:
    import pandas

    from rungwise.models import PairScorer

WordUse = Literal["auto", "on", "off"]

_MOST_PICTURES = 12
"""Number of pictures that a notebook shows of an answer."""
_COLOURS = {1: "#117a5e", 2: "#d59a1a", 3: "#8d6cab"}
"""Colours of the rungs before the end, which can be told apart on light and on dark ground."""
_PICTURE_OF = "_picture_of"
"""Attribute of an answer that gives its pictures. It is no field, so that copies as plain values are without it."""
_ENDS_HERE = "relevance ends here"


@dataclass(frozen=True)
class Hit:
    """A picture that was found: its id and its similarity to the query, NaN where nothing was compared."""

    __pydantic_config__ = IN_FILE

    id: str
    score: Number

    def __eq__(self, other: object) -> bool:
        # Tuples take one and the same NaN for equal, in every version of Python.
        return (self.id, self.score) == (other.id, other.score) if isinstance(other, Hit) else NotImplemented

    @property
    def shown_score(self) -> str:
        """The score as people read it; a dash where nothing was compared."""
        return "-" if math.isnan(self.score) else f"{self.score:.3f}"


@dataclass(frozen=True)
class CaptionHit:
    """A caption that was found, its similarity to the query, and the ids of the pictures that have it."""

    text: str
    score: float
    ids: tuple[str, ...]

    __repr__ = short_repr


@dataclass(frozen=True)
class SearchOptions:
    """Options of a search.

    Attributes:
        fold_duplicates: Put pictures with the same content, or nearly the same vector, under the first of them.
        diversity: 0 ranks by similarity alone; up to 1, pictures that are like earlier hits come later.
        words: Whether full text is joined with the vectors: ``"on"`` wherever the query has words, ``"off"`` nowhere,
            ``"auto"`` as described at :meth:`Searcher.search <rungwise.index.Searcher.search>`.
        exact: Compare every picture, also where the store has an approximate index.
        rerank: A reranker, such as a model that reads picture and text together.
        rerank_top: Number of hits, from the first, that the reranker scores.
        end: Judge where relevance ends. Hits after the end then stand after all others.

    Raises:
        UserError: If a value is out of range, or the reranker reads no pictures or no words.

    >>> SearchOptions(diversity=1.5)
    Traceback (most recent call last):
    rungwise.core.UserError: diversity is 1.5; give a number from 0 (by likeness alone) to 1
    """

    fold_duplicates: bool = True
    diversity: float = 0.0
    words: WordUse = "auto"
    exact: bool = False
    rerank: PairScorer | None = None
    rerank_top: int = 50
    end: bool = True

    def __post_init__(self) -> None:
        check_diversity(self.diversity)
        if self.words not in ("auto", "on", "off"):
            raise UserError(f"words is {self.words!r}; give auto, on or off")
        if self.rerank_top < 1:
            raise UserError(
                f"rerank_top is {self.rerank_top}; give at least 1", parameters={"rerank_top": "rerank_top"}
            )
        if self.rerank is not None:
            check_reranks(self.rerank)


@dataclass(frozen=True)
class End:
    """Where relevance ends in an answer.

    Attributes:
        rungs: Rung of each hit of the answer: 1, 2 or 3 as ``names`` names them, 4 after the end.
        degrees: Expected degree of relevance of each hit of the answer.
        shown: Number of groups of the whole ranking that stand before the end.
        belief: Probability, 0..1, that the index holds a relevant picture at all.
        source: One line that names what this was judged by.
        advice: Lines that say what to try where little or nothing was found.
        names: Names of the rungs 1, 2 and 3: :data:`rungwise.calibration.RUNGS` where they were learnt from
            judgements, else :data:`rungwise.calibration.UNJUDGED_RUNGS`.
        remark: One line for people where no picture stands out clearly, or none is like a given one; else empty.
    """

    __pydantic_config__ = IN_FILE

    rungs: tuple[int, ...]
    degrees: tuple[float, ...]
    shown: int
    belief: float
    source: str
    advice: tuple[str, ...] = ()
    names: tuple[str, str, str] = RUNGS
    remark: str = ""

    __repr__ = short_repr

    @property
    def nothing(self) -> bool:
        """Whether no picture was found to be relevant."""
        return self.shown == 0

    def band(self, place: int) -> str:
        """Name of the rung of the hit at this place of the answer, from 0; empty after the end."""
        return self.names[self.rungs[place] - 1] if self.rungs[place] < BEYOND else ""


@dataclass(frozen=True)
class Answer(InTables, CheckedJson):
    """The hits of a search, and what a person should know about them.

    The score of a hit is the model's similarity of query and picture, or the cosine where the query is pictures alone.
    A filter alone compares nothing, and its hits have no score (NaN).
    Hits stand in the order of their scores unless full text, reranking or diversity put them in another.

    A notebook shows the pictures of an answer that a :class:`~rungwise.index.Searcher` gave; one that was read from
    JSON has ids alone.

    Attributes:
        hits: Hits, best first.
        folded: Ids of the near-duplicates of a hit, best first, by the id of the hit.
        unknown: Words that the model does not know.
        reading: How the query was understood, in one line; empty where it is one plain text.
        notes: Lines that a person should read.
        more: Whether there are hits after these.
        end: Where relevance ends; None where it was not judged.

    >>> end = End((1, 4), (0.9, 0.1), shown=1, belief=0.97, source="unrelated texts")
    >>> answer = Answer((Hit("wolf.jpg", 0.81), Hit("cat.jpg", 0.3)), more=True, end=end)
    >>> answer
    Answer: 2 pictures, and there are more
      0.810  exactly  wolf.jpg
      -- relevance ends here --
      0.300  cat.jpg
    >>> Answer.from_json(answer.to_json()) == answer
    True
    """

    __pydantic_config__ = IN_FILE
    format: ClassVar[str] = "rungwise-answer/1"
    remedy: ClassVar[str] = "search again"

    hits: tuple[Hit, ...]
    folded: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    unknown: tuple[UnknownWord, ...] = ()
    reading: str = ""
    notes: tuple[str, ...] = ()
    more: bool = False
    end: End | None = None

    def with_pictures(self, picture_of: Callable[[str], bytes | None]) -> Answer:
        """The same answer, for which a notebook asks for its pictures.

        They are no part of the value: copies with other hits, comparisons and JSON have none.

        Args:
            picture_of: Gives a small JPEG of a picture by its id; None where it cannot be read.
        """
        answer = copy(self)
        object.__setattr__(answer, _PICTURE_OF, picture_of)
        return answer

    def to_frame(self) -> pandas.DataFrame:
        """A row for each hit, by its place from 1: id, score, band, degree and the ids of its near-duplicates.

        Bands are empty after the end of relevance. Where that was not judged, bands are empty and degrees are NaN.

        Raises:
            UserError: If pandas is not installed.
        """
        places = range(len(self.hits))
        return frame_of(
            {
                "rank": [place + 1 for place in places],
                "id": [hit.id for hit in self.hits],
                "score": [hit.score for hit in self.hits],
                "band": [self._band(place) for place in places],
                "degree": [math.nan] * len(self.hits) if self.end is None else list(self.end.degrees),
                "folded": [self.folded.get(hit.id, ()) for hit in self.hits],
            },
            "rank",
        )

    def __repr__(self) -> str:
        lines, below = list(self._lines()), self._below()
        room = MOST_LINES - 1 - min(len(below), 3)
        if len(lines) > room:
            shown = [line for line in lines[: room - 1] if _ENDS_HERE not in line]
            lines = [*lines[: room - 1], f"... {len(self.hits) - len(shown)} more hits"]
        if len(below) > 3:
            below = [*below[:2], f"... {len(below) - 2} more notes"]
        return "\n".join(cut(line, WIDTH) for line in [f"Answer: {self._title()}", *(f"  {x}" for x in lines + below)])

    def _repr_html_(self) -> str:
        parts: list[str] = []
        ends = self._ends_at()
        for place in range(min(len(self.hits), _MOST_PICTURES)):
            if place == ends:
                parts.append(f'<p class="end">{_ENDS_HERE}</p>')
            parts.append(self._figure(place))
        below = self._below()
        if (left := len(self.hits) - _MOST_PICTURES) > 0:
            below = [f"{left:,} further hits are not shown; to_frame() and to_markdown() have all", *below]
        return notebook_html(self._title(), f'<div class="pictures">{"".join(parts)}</div>' if parts else "", below)

    def __getstate__(self) -> dict[str, Any]:
        # Pictures come from an open index, which does not go to other processes.
        return {name: value for name, value in vars(self).items() if name != _PICTURE_OF}

    def _band(self, place: int) -> str:
        return "" if self.end is None else self.end.band(place)

    def _ends_at(self) -> int | None:
        """Place of the first hit after the end; None where all stand before it, or that was not judged."""
        rungs = () if self.end is None else self.end.rungs
        return next((place for place, rung in enumerate(rungs) if rung >= BEYOND), None)

    def _lines(self) -> Iterator[str]:
        ends = self._ends_at()
        for place, hit in enumerate(self.hits):
            if place == ends:
                yield f"-- {_ENDS_HERE} --"
            yield "  ".join(one for one in (hit.shown_score, self._band(place), one_line(hit.id, 60)) if one)

    def _figure(self, place: int) -> str:
        hit, band = self.hits[place], self._band(place)
        name = one_line(hit.id, 60)
        picture_of: Callable[[str], bytes | None] | None = vars(self).get(_PICTURE_OF)
        jpeg = None if picture_of is None else picture_of(hit.id)
        picture = embedded_jpeg(jpeg, name) if jpeg else f'<div class="missing">{escape(name)}</div>'
        colour = _COLOURS.get(self.end.rungs[place]) if self.end else None
        style = f' style="--band: {colour}"' if colour else ""
        said = ", ".join(one for one in (band, hit.shown_score) if one)
        alike = f", {len(own)} alike" if (own := self.folded.get(hit.id, ())) else ""
        return (
            f"<figure{style}>{picture}<figcaption><b>{escape(said)}</b>{alike}<br>{escape(name)}</figcaption></figure>"
        )

    def _title(self) -> str:
        count = len(self.hits)
        found = f"{count:,} picture{'' if count == 1 else 's'}" if count else "no pictures"
        read = f", {one_line(self.reading, 70)}" if self.reading else ""
        return f"{found}{read}" + (", and there are more" if self.more else "")

    def _tables(self) -> list[TextTable]:
        head = ("rank", "id", "score", *(("band", "degree") if self.end else ()), *(("alike",) if self.folded else ()))
        rows = []
        for place, hit in enumerate(self.hits):
            judged = (self._band(place), f"{self.end.degrees[place]:.3f}") if self.end else ()
            alike = (str(len(self.folded.get(hit.id, ()))),) if self.folded else ()
            rows.append((str(place + 1), hit.id, hit.shown_score, *judged, *alike))
        return [TextTable(head, rows, frozenset({"id", "band"}))]

    def _below(self) -> list[str]:
        lines = [str(word) for word in self.unknown]
        if self.end is not None:
            if self.end.nothing:
                lines += [self.end.remark or "nothing relevant found", *self.end.advice]
            else:
                lines += [self.end.remark] if self.end.remark else []
                if self._ends_at() is None and self.hits:
                    lines.append(f"relevance ends after {self.end.shown:,} pictures")
        return [*lines, *self.notes]

    def _check_parts(self) -> None:
        end, count = self.end, len(self.hits)
        if end is not None:
            if not len(end.rungs) == len(end.degrees) == count:
                raise ValueError(f"end: {len(end.rungs)} rungs and {len(end.degrees)} degrees of {count} hits")
            if not all(1 <= rung <= BEYOND for rung in end.rungs):
                raise ValueError(f"end.rungs: give numbers from 1 to {BEYOND}")
        if strange := self.folded.keys() - {hit.id for hit in self.hits}:
            raise ValueError(f"folded: no hit has the id {one_line(min(strange), 40)!r}")


def hits_of(found: StoreHits) -> list[list[Hit]]:
    """Hits of each query from what a store of pictures found, best first."""
    return [
        [Hit(one, score) for one, score in zip(ids, scores.tolist(), strict=True)]
        for ids, scores in zip(found.ids, found.scores, strict=True)
    ]


def check_diversity(diversity: float) -> None:
    """Refuse a diversity outside 0..1."""
    if not 0 <= diversity <= 1:
        raise UserError(f"diversity is {diversity}; give a number from 0 (by likeness alone) to 1")


def check_reranks(scorer: PairScorer) -> None:
    """Refuse a reranker that reads rows of features in place of pictures or texts."""
    for reads, what in ((scorer.reads_pictures, "pictures"), (scorer.reads_words, "words")):
        if not reads:
            kind = scorer.kind or type(scorer).__name__
            raise UserError(
                f"the reranker, a model of kind {kind!r}, was trained on rows of features in place of {what} and reads"
                f" no {what}; rerank by one that was trained on {what}"
            )
