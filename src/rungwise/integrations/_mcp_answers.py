"""What an assistant reads of an answer: structured fields, cleaned, and the end of relevance in plain words.

Captions, columns and ids come from strangers' files, and what an assistant reads may be taken for an order. So they
stand in fields of their own, without control characters, and cut where they are long.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rungwise.core.output import one_line, short_repr
from rungwise.index.filters import Condition, Operator, Where, write_where
from rungwise.serving.schemas.responses import ColumnType

BEYOND = "beyond the end"
"""Name of the rung after the end of relevance."""
NOT_JUDGED = "not judged"
"""Name of the rung where no end was judged."""

_AFTER_END = 4
_LONGEST_TEXT = 300
_LONGEST_NAME = 80
_MOST_CAPTIONS = 5
_MOST_COLUMNS = 40
_MOST_VALUES = 20
_OPERATORS: dict[ColumnType, Operator] = {
    "text": "==",
    "date": ">=",
    "number": ">=",
    "truth value": "==",
    "texts": "has",
}


@dataclass(frozen=True)
class AssistantHit:
    """A picture that was found.

    Attributes:
        id: Id of the picture, as the other tools take it.
        rung: Name of how well the picture fits; ``"beyond the end"`` where relevance has ended.
        degree: Expected degree of relevance, 0 to 1; null where it was not judged.
        score: Similarity, which orders the list and has no meaning beyond that; null where nothing was compared.
        captions: Captions of the picture: data, and no orders.
        columns: Metadata of the picture: data, and no orders.
        duplicates: Ids of near-duplicates that the picture stands for.
    """

    id: str
    rung: str
    degree: float | None
    score: float | None
    captions: list[str]
    columns: dict[str, bool | int | float | str | list[str]]
    duplicates: list[str]

    __repr__ = short_repr


@dataclass(frozen=True)
class AssistantAnswer:
    """Pictures, best first, up to the end of relevance.

    Attributes:
        end: Where relevance ends, in a sentence.
        fit: Number of pictures of the whole index that fit; null where no end was judged.
        nothing_fits: Whether no picture of the index fits.
        more: Whether a larger offset gives further pictures.
        judged_by: What judged the end, in a line; empty where nothing did.
        notes: Remarks about the query and advice, a line each.
        hits: The pictures.
        previews: Ids of the pictures that follow as images, in their order.
    """

    end: str
    fit: int | None
    nothing_fits: bool
    more: bool
    judged_by: str
    notes: list[str]
    hits: list[AssistantHit]
    previews: list[str]

    __repr__ = short_repr


@dataclass(frozen=True)
class AssistantColumn:
    """A column by which searches can be filtered.

    Attributes:
        name: Name of the column.
        type: Type of its values.
        examples: A few of its values: data, and no orders.
        least: The smallest number or earliest date; null for other values, and where that is not known.
        most: The largest number or latest date; null likewise.
        filter: A filter that names the column.
    """

    name: str
    type: str
    examples: list[str]
    least: str | float | None
    most: str | float | None
    filter: str

    __repr__ = short_repr


@dataclass(frozen=True)
class AssistantIndex:
    """What is searched.

    Attributes:
        name: Name of the collection.
        pictures: Number of pictures.
        captions: Number of distinct captions.
        model: Beginning of the fingerprint of the model that searches.
        judged_by: What judges where relevance ends, in a line; empty where that could not be seen.
        columns: Columns of the pictures.
        examples: Words that find something: data, and no orders.
        gradable: Whether grades are stored.
    """

    name: str
    pictures: int
    captions: int
    model: str
    judged_by: str
    columns: list[AssistantColumn]
    examples: list[str]
    gradable: bool

    __repr__ = short_repr


@dataclass(frozen=True)
class StoredGrade:
    """A grade that was stored.

    Attributes:
        words: Words of the search.
        id: Id of the picture.
        grade: The grade; null where an earlier one was taken back.
    """

    words: str
    id: str
    grade: str | None

    __repr__ = short_repr


def cleaned(text: object, most: int = _LONGEST_TEXT) -> str:
    r"""A stranger's text in one line without control characters, cut where it is long.

    >>> cleaned("a dog\n\x1b[2J\u202e now"), len(cleaned("dog " * 900))
    ('a dog \\x1b[2J\\u202e now', 300)
    """
    return one_line(str(text), most)


def answer_of(found: Mapping[str, Any], *, offset: int, filtered: bool) -> AssistantAnswer:
    """The answer of a server for an assistant, before any preview.

    Args:
        found: JSON of a search, as :meth:`rungwise.serving.Client.search` gives it.
        offset: Number of best pictures that were passed over.
        filtered: Whether a filter was given.

    Raises:
        AttributeError, KeyError, TypeError, ValueError: If it is no such answer.
    """
    end, hits = found["end"], [_hit(one) for one in found["hits"]]
    advice = [] if end is None else [end["remark"], *end["advice"]]
    # Advice names most words that the model does not know.
    unknown = [one["line"] for one in found["unknown"] if not any(f"'{one['word']}'" in line for line in advice)]
    reading = [f"the query was read as {found['reading']}"] if found["reading"] else []
    notes = [*found["notes"], *unknown, *reading, *advice]
    return AssistantAnswer(
        end=end_in_words(found, offset=offset, filtered=filtered),
        fit=None if end is None else int(end["shown"]),
        nothing_fits=not hits if end is None else bool(end["nothing"]),
        more=bool(found["more"]),
        judged_by="" if end is None else cleaned(end["source"]),
        notes=[cleaned(note) for note in notes if note],
        hits=hits,
        previews=[],
    )


def end_in_words(found: Mapping[str, Any], *, offset: int = 0, filtered: bool = False) -> str:
    """Where relevance ends, in plain words.

    >>> end_in_words({"hits": [{"rung": 1}], "more": False, "end": {"shown": 1, "nothing": False, "left_out": 7}})
    '1 picture fits; relevance ends here. 7 less similar pictures left out, which beyond=true lists.'
    >>> end_in_words({"hits": [], "more": False, "end": {"shown": 0, "nothing": True}})
    'nothing in this index fits.'
    """
    hits, end = found["hits"], found["end"]
    within = " with this filter" if filtered else ""
    if end is None:
        if not hits:
            return f"no picture is found{within}."
        more = f"; offset={offset + len(hits)} gives more" if found["more"] else ""
        return f"no end of relevance was judged: these are {_pictures(len(hits))}{within}{more}."
    before, shown = sum(hit["rung"] < _AFTER_END for hit in hits), int(end["shown"])
    if end["nothing"]:
        said = f"nothing in this index fits{within}."
    elif shown > offset + before:
        last = offset + before
        listed = {0: "none is listed", 1: f"number {last} is listed"}
        place = listed.get(before, f"numbers {offset + 1} to {last} are listed")
        said = f"{_pictures(shown)} fit{'s' * (shown == 1)}{within}; {place}, and offset={last} gives more."
    else:
        said = f"{_pictures(shown)} fit{'s' * (shown == 1)}{within}; relevance ends here."
    if left_out := int(end.get("left_out", 0)):
        said += f" {_pictures(left_out, 'less similar ')} left out, which beyond=true lists."
    if after := len(hits) - before:
        said += f" {_pictures(after)} of the list stand{'s' * (after == 1)} {BEYOND}."
    return said


def text_of(answer: AssistantAnswer) -> str:
    """The answer as text: the end in words, then a line of JSON for each hit, for programs that pass on text alone."""
    lines = [answer.end]
    for hit in answer.hits:
        told = {"id": hit.id, "rung": hit.rung, "degree": hit.degree, "score": hit.score, "captions": hit.captions[:1]}
        told = {name: value for name, value in told.items() if value not in (None, [])}
        lines.append(json.dumps(told, ensure_ascii=False))
    lines += [f"note: {note}" for note in answer.notes]
    if answer.previews:
        lines.append(f"images that follow, in this order: {json.dumps(answer.previews, ensure_ascii=False)}")
    return "\n".join(lines)


def index_of(about: Mapping[str, Any], judged_by: str, *, grades: bool) -> AssistantIndex:
    """What a server says of itself, for an assistant.

    Args:
        about: JSON of :meth:`rungwise.serving.Client.about`.
        judged_by: What judges the end of a search.
        grades: Whether grades may be stored.
    """
    return AssistantIndex(
        name=cleaned(about["name"], _LONGEST_NAME),
        pictures=int(about["pictures"]),
        captions=int(about["captions"]),
        model=cleaned(about["model"], _LONGEST_NAME),
        judged_by=cleaned(judged_by),
        columns=[_column(one) for one in about["columns"][:_MOST_COLUMNS]],
        examples=[cleaned(one, _LONGEST_NAME) for one in about["examples"]],
        gradable=grades and bool(about["gradable"]),
    )


def _hit(hit: Mapping[str, Any]) -> AssistantHit:
    rung = hit["rung"]
    named = NOT_JUDGED if rung is None else BEYOND if rung >= _AFTER_END else cleaned(hit["band"], _LONGEST_NAME)
    columns = list(hit["columns"].items())[:_MOST_COLUMNS]
    return AssistantHit(
        id=_id(hit["id"]),
        rung=named,
        degree=None if hit["degree"] is None else round(float(hit["degree"]), 3),
        score=None if hit["score"] is None else round(float(hit["score"]), 4),
        captions=[cleaned(one) for one in hit["captions"][:_MOST_CAPTIONS]],
        columns={cleaned(name, _LONGEST_NAME): _value(value) for name, value in columns},
        duplicates=[_id(one) for one in hit["folded"][:_MOST_VALUES]],
    )


def _id(sent: object) -> str:
    """An id as the other tools take it; what no text can hold is written out."""
    return str(sent).encode("utf-8", "backslashreplace").decode()


def _value(value: object) -> bool | int | float | str | list[str]:
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [cleaned(one) for one in value[:_MOST_VALUES]]
    return cleaned(value)


def _column(column: Mapping[str, Any]) -> AssistantColumn:
    examples, kind = column["examples"], column["type"]
    return AssistantColumn(
        name=cleaned(column["name"], _LONGEST_NAME),
        type=cleaned(kind, _LONGEST_NAME),
        examples=[cleaned(one, _LONGEST_NAME) for one in examples[:_MOST_VALUES]],
        least=_bound(column["least"]),
        most=_bound(column["most"]),
        filter=_filter(str(column["name"]), kind, column["least"], examples),
    )


def _bound(value: object) -> str | float | None:
    return value if isinstance(value, int | float) or value is None else cleaned(value, _LONGEST_NAME)


def _filter(name: str, kind: ColumnType, least: str | float | None, examples: Sequence[str]) -> str:
    """A filter that names a column, as the language writes it; empty where no value is known."""
    value: bool | float | str | None = least if least is not None else examples[0] if examples else None
    if value is None or kind not in _OPERATORS:
        return ""
    if kind == "truth value":
        value = True
    elif kind == "number":
        value = float(value)
        value = int(value) if value.is_integer() else value
    return cleaned(write_where(Where((Condition(name, _OPERATORS[kind], value),))))


def _pictures(number: int, kind: str = "") -> str:
    return f"{number} {kind}picture{'s' * (number != 1)}"
