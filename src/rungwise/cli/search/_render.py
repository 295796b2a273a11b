"""Output of a search, from an index or a server: lines for a terminal and JSON for a program."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from rungwise.calibration import BEYOND, RUNGS, UNJUDGED_RUNGS
from rungwise.core.output import printable
from rungwise.jobs import shortest

if TYPE_CHECKING:
    from rungwise.index import End

Cell = str | bool | int | float | Sequence[str]

_SHOWN_FACTS = ("width", "height", "taken")
_FACTS = frozenset(
    {
        "file",
        "folder",
        "bytes",
        "modified",
        "year",
        "format",
        "latitude",
        "longitude",
        "hash",
        "camera_make",
        "camera_model",
        "lens",
        *_SHOWN_FACTS,
    }
)
"""Columns that rungwise knows of every picture; the second line of a hit is for the user's own."""


@dataclass(frozen=True)
class SearchedPage:
    """A picture that was found.

    Attributes:
        id: Id of the picture, as the user gave it.
        path: Path of the file as text, or the address of a server's picture; None without a file.
        score: Similarity of the picture; None where nothing was compared.
        captions: All captions of the picture.
        columns: The user's columns and the file's metadata.
        content: Function that gives the bytes of the file; None without a file.
        file_name: File name for a copy.
        rung: Rung 1 to 3, or 4 beyond the end of relevance; None where that was not judged.
        degree: Expected degree of relevance; None where that was not judged.
        names: Names of the rungs 1, 2 and 3.
        why: Explanations of where words of the query were found, one per word; empty where that was not asked.
        packed: Whether the picture is a part of a larger file, which ``path`` then names for people.
    """

    id: str
    path: str | None
    score: float | None
    captions: tuple[str, ...] = ()
    columns: Mapping[str, Cell] = field(default_factory=dict)
    content: Callable[[], bytes] | None = None
    file_name: str = ""
    rung: int | None = None
    degree: float | None = None
    names: tuple[str, str, str] = RUNGS
    why: tuple[str, ...] = ()
    packed: bool = False

    @property
    def band(self) -> str:
        """Name of the rung; empty beyond the end of relevance, and where it was not judged."""
        return self.names[self.rung - 1] if self.rung is not None and self.rung < BEYOND else ""

    def as_json(self) -> dict[str, Any]:
        """Plain values for JSON, with the user's columns as keys.

        >>> SearchedPage("a.jpg", "/photos/a.jpg", 0.25, ("a dog",), {"year": 2021}).as_json()
        {'id': 'a.jpg', 'path': '/photos/a.jpg', 'score': 0.25, 'captions': ['a dog'], 'year': 2021}
        """
        own = {"id": self.id, "path": self.path, "score": self.score, "captions": list(self.captions)}
        if self.rung is not None:
            own |= {"degree": self.degree, "rung": self.rung, "band": self.band}
        if self.why:
            own["why"] = list(self.why)
        return own | {name: _plain(value) for name, value in self.columns.items() if name not in own}


@dataclass(frozen=True)
class SearchOutput:
    """Answer of a search.

    Attributes:
        query: The query as typed.
        hits: Pictures that were found, best first.
        reading: The query as it was understood; empty where that is obvious.
        unknown: One line for each word that the model does not know.
        unknown_words: Unknown words with near words that the model knows.
        notes: Further remarks.
        folded: Ids of the near-duplicates that a hit stands for, by its id.
        captions: Captions that fit a given picture, with their scores.
        more: Whether there are further hits.
        first: Place of the first hit in the whole ranking, from 1.
        end: Where relevance ends; None where that was not judged.
        left_out: Number of hits after the end that :meth:`until_end` left out.
    """

    query: str
    hits: tuple[SearchedPage, ...]
    reading: str = ""
    unknown: tuple[str, ...] = ()
    unknown_words: tuple[tuple[str, tuple[str, ...]], ...] = ()
    notes: tuple[str, ...] = ()
    folded: Mapping[str, Sequence[str]] = field(default_factory=dict)
    captions: tuple[tuple[str, float], ...] = ()
    more: bool = False
    first: int = 1
    end: End | None = None
    left_out: int = 0

    def until_end(self) -> Self:
        """The output with only the hits before the end of relevance; unchanged where that was not judged.

        Its ``more`` says whether there are further hits before the end.
        """
        if self.end is None:
            return self
        before = self._before
        return replace(
            self,
            hits=before,
            folded={hit.id: self.folded[hit.id] for hit in before if hit.id in self.folded},
            more=self.more and not self.has_ended,
            left_out=len(self.hits) - len(before),
        )

    @property
    def has_ended(self) -> bool:
        """Whether relevance ends before or with the last of these hits."""
        return self.end is not None and self.end.shown < self.first + len(self.hits)

    @property
    def _before(self) -> tuple[SearchedPage, ...]:
        return tuple(hit for hit in self.hits if hit.rung != BEYOND)

    def as_json(self) -> str:
        """One JSON object in ASCII, which every pipe and terminal accepts."""
        whole: dict[str, Any] = {"query": self.query, "hits": [hit.as_json() for hit in self.hits]}
        if self.end is not None:
            whole["end"] = {
                "shown": self.end.shown,
                "left_out": self.left_out,
                "nothing": self.end.nothing,
                "belief": self.end.belief,
                "source": self.end.source,
                "names": list(self.end.names),
                "remark": self.end.remark,
                "advice": list(self.end.advice),
            }
        further = {
            "reading": self.reading,
            "unknown": [{"word": word, "near": list(near)} for word, near in self.unknown_words],
            "notes": list(self.notes),
            "folded": {one: list(others) for one, others in self.folded.items() if others},
            "captions": [{"text": text, "score": score} for text, score in self.captions],
            "more": self.more,
        }
        return json.dumps(whole | {name: value for name, value in further.items() if value}, indent=2, allow_nan=False)

    def lines(self, width: int | None, here: Path, *, everything: bool = False) -> Iterator[str]:
        r"""Lines for a person.

        Args:
            width: Number of terminal columns; None where lines may have any length.
            here: Folder that paths are shown relative to.
            everything: Whether to show hits beyond the end of relevance too.

        >>> hit = SearchedPage("a.jpg", "/photos/a.jpg", 0.25, ("a dog", "a pet"), {"year": 2021, "shop": "Rome"})
        >>> print(*SearchOutput("dogs", (hit,)).lines(80, Path("/photos")), sep="\n")
        files in .
          1  0.250  a.jpg
                    a dog (+1)  shop: Rome
        """
        yield from self.unknown
        if self.reading:
            yield f"read as: {self.reading}"
        before = self._before if self.end is not None else self.hits
        shown = self.hits if everything else before
        base = _common_folder(shown)
        if base is not None and shown:
            yield f"files in {_from_here(base, here)}"
        if self.end is not None and self.end.remark and before and self.first == 1:
            yield self.end.remark
        band = ""
        for rank, hit in enumerate(before, self.first):
            if hit.band != band:
                band = hit.band
                yield f"{band} matches" if band in UNJUDGED_RUNGS else band
            yield from self._hit(rank, hit, width, here, base)
        if not self.hits:
            yield "nothing found"
        elif self.end is not None and self.has_ended:
            yield from self._said_of_end(self.end, len(self.hits) - len(before), everything)
            for rank, hit in enumerate(self.hits[len(before) :] if everything else (), self.first + len(before)):
                yield from self._hit(rank, hit, width, here, base)
        if self.captions:
            yield "score  caption"
            yield from (_cut(f"{score:<6.3f} {_line(text)}", width) for text, score in self.captions)
        yield from self.notes

    def _said_of_end(self, end: End, less: int, everything: bool) -> Iterator[str]:
        if end.nothing:
            yield end.remark or "nothing relevant found"
            yield from (f"  {line}" for line in end.advice)
        else:
            yield "-- relevance ends here --" if end.shown >= self.first else f"relevance ends after {end.shown}"
        if not everything and (less or self.more):
            yield f"{less or 'some'} more, less related: --all shows them"
        elif end.nothing:
            yield "-- less related --"

    def _hit(self, rank: int, hit: SearchedPage, width: int | None, here: Path, base: str | None) -> Iterator[str]:
        score = "     -" if hit.score is None else f"{hit.score:6.3f}"
        head = f"{rank:>3} {score}  "
        name = _line(hit.id) if base is not None or hit.path is None else _name(hit, here)
        facts = "  ".join(_facts(hit, len(self.folded.get(hit.id, ()))))
        if width is None:
            yield f"{head}{name}{'  ' if facts else ''}{facts}"
        else:
            room = max(12, width - len(head) - len(facts) - 2)
            shown = _cut_front(name, room)
            yield f"{head}{shown}{' ' * (room - _cells(shown) + 2)}{facts}".rstrip()
        if words := _words(hit, self.query):
            yield _cut(f"{'':<{len(head)}}{words}", width)
        if hit.why:
            yield _cut(f"{'':<{len(head)}}{', '.join(hit.why)}", width)


def _facts(hit: SearchedPage, folded: int) -> Iterator[str]:
    width, height, taken = (hit.columns.get(name) for name in _SHOWN_FACTS)
    if folded:
        yield f"+{folded} alike"
    if isinstance(taken, str):
        yield _line(taken)[:10]
    if isinstance(width, int) and isinstance(height, int):
        yield f"{width}x{height}"


def _words(hit: SearchedPage, query: str) -> str:
    """The caption with most of the query's words, and texts of the user's columns."""
    parts = []
    if hit.captions:
        asked = _terms(query)
        nearest = max(hit.captions, key=lambda caption: len(asked & _terms(caption)))
        more = f" (+{len(hit.captions) - 1})" if len(hit.captions) > 1 else ""
        parts.append(f"{_line(nearest)}{more}")
    for name, value in hit.columns.items():
        if name not in _FACTS and (said := _said(value)) and said not in hit.captions:
            parts.append(f"{_line(name)}: {said}")
    return "  ".join(parts)


def _terms(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def _said(value: Cell) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:.15g}" if isinstance(value, float) else str(value)
    return _line(value) if isinstance(value, str) else ", ".join(map(_line, value))


def _plain(value: Cell) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | bool | int | float) else list(value)


def _line(text: str) -> str:
    return printable(" ".join(text.split()))


def _name(hit: SearchedPage, here: Path) -> str:
    path = _from_here(hit.path or "", here)
    return _line(path) if path.endswith(hit.id) else f"{_line(hit.id)}  {_line(path)}"


def _from_here(path: str, here: Path) -> str:
    """The shortest form of a path to paste; the address of a server is unchanged."""
    return shortest(Path(path), here) if Path(path).is_absolute() else path


def _common_folder(hits: Sequence[SearchedPage]) -> str | None:
    """The folder below which every file lies at its id; None without such a folder."""
    bases = {
        hit.path[: -len(hit.id)].rstrip("/") if hit.path is not None and hit.path.endswith(f"/{hit.id}") else None
        for hit in hits
    }
    return bases.pop() if len(bases) == 1 else None


def _cells(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(text)


def _cut(text: str, width: int | None) -> str:
    """The beginning of a text, in at most ``width`` terminal columns."""
    if width is None or _cells(text) <= width:
        return text
    from rich.cells import set_cell_size

    return set_cell_size(text, width - 1).rstrip() + "…"


def _cut_front(text: str, width: int) -> str:
    """The end of a text, in at most ``width`` terminal columns."""
    if _cells(text) <= width:
        return text
    while text and _cells(text) > width - 1:
        text = text[1:]
    return f"…{text}"
