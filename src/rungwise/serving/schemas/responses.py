"""What the server answers, as values: the OpenAPI document describes them, and the Python client gives them back.

Nothing here needs the libraries of the server, so that a client goes without them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Value = bool | int | float | str | tuple[str, ...]
"""Of a column: a truth value, a number, a text or several texts."""
ColumnType = Literal["text", "number", "truth value", "texts"]
By = Literal["clusters", "newest", "random"]
"""How a sample is chosen."""
Band = Literal["exactly", "close", "loosely related", ""]
"""How well a picture fits; empty after the end of relevance, and where that was not judged."""
GradeName = Literal["right", "close", "wrong"]
"""What a person says of a picture that a search found."""


@dataclass(frozen=True)
class Refusal:
    """Every refusal.

    Attributes:
        error: One line: what is wrong, and what to do.
    """

    error: str


@dataclass(frozen=True)
class ColumnValue:
    """One of the values of a column.

    Attributes:
        value: As a text.
        rows: About how many pictures have it.
    """

    value: str
    rows: int


@dataclass(frozen=True)
class IndexColumn:
    """A column of the index, by which searches can be filtered.

    Attributes:
        name: As a filter names it.
        type: Of its values.
        examples: A few of them.
        rows: About how many pictures have one.
        least: The smallest number or earliest date; None for other values.
        most: The largest number or latest date; likewise.
        values: The commonest, where most of them stand more than once.
    """

    name: str
    type: ColumnType
    examples: tuple[str, ...]
    rows: int
    least: str | float | None
    most: str | float | None
    values: tuple[ColumnValue, ...]


@dataclass(frozen=True)
class About:
    """What is searched, and the limits of a request.

    Attributes:
        name: Of the collection.
        pictures: How many.
        captions: How many distinct ones.
        skipped: Pictures that could not be read when the index was built.
        dimension: Of a vector.
        similarity: Of a picture and a text.
        model: The beginning of its fingerprint.
        index_version: Differs from that of every other state of the index.
        problem: Why another index that stands in the folder now is not served.
        columns: Of the pictures.
        max_results: The largest k.
        max_offset: The largest offset.
        max_upload_bytes: Of a picture.
        max_upload_pixels: Of a picture.
        writable: Whether pictures can be added and deleted.
        gradable: Whether people may say how well pictures fit.
        reranked_by: What kind of model ranks the first hits of searches with words anew; empty where none does.
        rerank_top: How many of them; 0 where none does.
        explains: Whether that model says which regions answered which words (``/why``).
        version: Of rungwise.
        examples: A few captions.
        newest: Ids of the newest pictures.
    """

    name: str
    pictures: int
    captions: int
    skipped: int
    dimension: int
    similarity: str
    model: str
    index_version: str
    problem: str | None
    columns: tuple[IndexColumn, ...]
    max_results: int
    max_offset: int
    max_upload_bytes: int
    max_upload_pixels: int
    writable: bool
    gradable: bool
    reranked_by: str
    rerank_top: int
    explains: bool
    version: str
    examples: tuple[str, ...]
    newest: tuple[str, ...]


@dataclass(frozen=True)
class Picture:
    """A picture of the index.

    Attributes:
        id: The user's.
        captions: Its own.
        columns: Facts of the file and the user's columns.
        has_file: Whether it can be shown.
    """

    id: str
    captions: tuple[str, ...]
    columns: Mapping[str, Value]
    has_file: bool


@dataclass(frozen=True)
class SinglePicture(Picture):
    """A picture of the index by itself.

    Attributes:
        index_version: See :class:`About`.
        file_name: Of its file, without folders; empty where it has none.
    """

    index_version: str
    file_name: str


@dataclass(frozen=True)
class FoundPicture(Picture):
    """A picture that was found.

    Attributes:
        score: How alike it is; pictures that were browsed have none.
        folded: Ids of near-duplicates that it stands for.
        degree: The degree of relevance that is expected of it; None where that was not judged.
        rung: 1, 2 or 3 as ``band`` names them, 4 after the end of relevance; None where that was not judged.
        band: How well it fits.
    """

    score: float | None
    folded: tuple[str, ...]
    degree: float | None
    rung: int | None
    band: Band


@dataclass(frozen=True)
class ShownEnd:
    """Where relevance ends.

    Attributes:
        shown: How many of the whole ranking, from its start, stand before the end.
        nothing: Whether that is none.
        belief: That a picture of the index is relevant at all, 0..1.
        source: By what this was judged, in a line.
        advice: What to try where little or nothing was found, a line each.
    """

    shown: int
    nothing: bool
    belief: float
    source: str
    advice: tuple[str, ...]


@dataclass(frozen=True)
class Unknown:
    """A word of the query that the model never learnt.

    Attributes:
        word: As it was typed.
        near: Words that the model knows, nearest first.
        line: The same as a sentence.
    """

    word: str
    near: tuple[str, ...]
    line: str


@dataclass(frozen=True)
class QueryTerm:
    """A part of the query, as it was understood.

    Attributes:
        kind: A text, a picture of the index, or one that was sent.
        text: The text; empty for pictures.
        id: Of the picture of the index; empty for others.
        picture: Name of the picture that was sent; empty for others.
        weight: How much it counts; below 0 for what is wanted less.
    """

    kind: Literal["words", "like", "picture"]
    text: str
    id: str
    picture: str
    weight: float


@dataclass(frozen=True)
class FoundPictures:
    """Pictures, best first.

    Attributes:
        index_version: See :class:`About`.
        query: The text as it was asked.
        terms: Its parts as they were understood, pictures among them.
        reading: The same in one line; empty where it is one plain text.
        unknown: Words of it that the model never learnt.
        notes: What else there is to say, a line each.
        more: Whether there are more beyond these.
        scale: Scores that a bar shows as empty and as full.
        hits: The pictures.
        end: Where relevance ends; None where that was not judged.
    """

    index_version: str
    query: str
    terms: tuple[QueryTerm, ...]
    reading: str
    unknown: tuple[Unknown, ...]
    notes: tuple[str, ...]
    more: bool
    scale: tuple[float, float]
    hits: tuple[FoundPicture, ...]
    end: ShownEnd | None


@dataclass(frozen=True)
class FoundSimilar(FoundPictures):
    """Pictures like one of the index.

    Attributes:
        of: That picture.
    """

    of: Picture


@dataclass(frozen=True)
class Caption:
    """A caption that was found.

    Attributes:
        text: The caption.
        score: How well it fits.
        ids: Of the pictures that have it.
    """

    text: str
    score: float
    ids: tuple[str, ...]


@dataclass(frozen=True)
class Captions:
    """Captions of the collection that fit a picture, best first.

    Attributes:
        index_version: See :class:`About`.
        scale: As in :class:`FoundPictures`.
        has_captions: Whether the collection has any.
        captions: Those found.
    """

    index_version: str
    scale: tuple[float, float]
    has_captions: bool
    captions: tuple[Caption, ...]


@dataclass(frozen=True)
class PictureGroup:
    """Pictures that belong together.

    Attributes:
        label: What they have in common, or how they were chosen.
        query: A query that finds more of them; empty where there is none.
        size: About how many pictures of the index there are in it.
        items: A few of them.
    """

    label: str
    query: str
    size: int
    items: tuple[Picture, ...]


@dataclass(frozen=True)
class PictureSample:
    """Pictures to start with.

    Attributes:
        index_version: See :class:`About`.
        by: How they were chosen.
        ready: Whether they were chosen like that; groups of like pictures are computed once for every version of the
            index, and until then the sample is random.
        groups: The pictures.
    """

    index_version: str
    by: By
    ready: bool
    groups: tuple[PictureGroup, ...]


@dataclass(frozen=True)
class KeptUpload:
    """A picture that was sent, and is kept for searches.

    Attributes:
        picture: Names it in ``picture=`` of a search.
        width: In pixels.
        height: In pixels.
        seconds: For which it is kept after it was last used, if there is room.
    """

    picture: str
    width: int
    height: int
    seconds: float


@dataclass(frozen=True)
class Changed:
    """What a change of the index did.

    Attributes:
        index_version: After it; see :class:`About`.
        id: Of the picture.
        change: What was done; a picture that is added takes the place of another with its id.
    """

    index_version: str
    id: str
    change: Literal["added", "replaced", "removed"]


@dataclass(frozen=True)
class GivenGrade:
    """What a person said of a picture that a search found.

    Attributes:
        query: What was searched for, as it was typed.
        id: Of the picture.
        grade: How well it fits.
        when: In UTC, as ISO 8601 writes it.
        who: Said it; empty where nobody gave a name.
    """

    query: str
    id: str
    grade: GradeName
    when: str
    who: str


@dataclass(frozen=True)
class GivenGrades:
    """Grades that people gave.

    Attributes:
        grades: Some of them, newest first.
        more: Whether there are more beyond these.
        queries: How many searches were judged, in all.
        needed: How many it takes to fit the end of relevance to them.
    """

    grades: tuple[GivenGrade, ...]
    more: bool
    queries: int
    needed: int


@dataclass(frozen=True)
class CalibrationOutcome:
    """What fitting the end of relevance to the grades did.

    Attributes:
        index_version: After it; see :class:`About`.
        queries: How many searches were judged.
        source: By what the end is judged from now on, in a line.
        changes: What is different for the searches that were judged, a line each.
    """

    index_version: str
    queries: int
    source: str
    changes: tuple[str, ...]


@dataclass(frozen=True)
class Health:
    """That the server answers.

    Attributes:
        status: Always the same.
        pictures: How many are served.
    """

    status: Literal["ok"]
    pictures: int


@dataclass(frozen=True)
class Ready:
    """That searches would be answered now.

    Attributes:
        status: Always the same.
        pictures: How many the store of the index says it has.
    """

    status: Literal["ready"]
    pictures: int
