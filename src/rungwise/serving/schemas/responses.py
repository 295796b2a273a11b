"""Schemas of the server's answers, which the OpenAPI document describes and the Python client returns.

They need none of the server's libraries, so that a client does without them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from rungwise.core.output import short_repr

__all__ = [
    "About",
    "Band",
    "By",
    "CalibrationOutcome",
    "Caption",
    "Captions",
    "Changed",
    "ColumnType",
    "ColumnValue",
    "ColumnValues",
    "FoundPicture",
    "FoundPictures",
    "FoundSimilar",
    "GivenGrade",
    "GivenGrades",
    "GradeName",
    "Health",
    "IndexColumn",
    "KeptUpload",
    "ListedSearch",
    "MarkedPicture",
    "MarkedPictures",
    "Picture",
    "PictureGroup",
    "PictureSample",
    "QueryTerm",
    "Ready",
    "Refusal",
    "SavedSearches",
    "ShownEnd",
    "SinglePicture",
    "Unknown",
    "Value",
]

Value = bool | int | float | str | tuple[str, ...]
"""Value of a column: a truth value, a number, a text or several texts."""
ColumnType = Literal["text", "date", "number", "truth value", "texts"]
"""Type of a column's values; of ``date`` are texts that are all dates, as ISO 8601 writes them."""
By = Literal["clusters", "newest", "random"]
"""Ways of choosing a sample."""
Band = Literal["exactly", "close", "loosely related", "best", "good", "further", ""]
"""Name of how well a picture fits: one of the first three where it was learnt from judgements, of the next three where
nothing was judged; empty after the end of relevance, and where no end was looked for."""
GradeName = Literal["right", "close", "wrong"]
"""Grade that a person gives to a picture that a search found."""


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
        value: The value as a text.
        rows: Number of pictures that have it; of a folder, the pictures in it and in all below it.
        inner: Whether it is a folder with folders in it.
    """

    value: str
    rows: int
    inner: bool


@dataclass(frozen=True)
class IndexColumn:
    """A column of the index, by which searches can be filtered.

    Attributes:
        name: Name of the column in a filter.
        type: Type of its values.
        examples: A few of its values.
        rows: Number of pictures that have a value; None until it is counted.
        about: Whether numbers of pictures are about so, as pictures that were drawn at random say.
        least: The smallest number or earliest date of all; None for other values, and where that is not known.
        most: The largest number or latest date of all; None for other values, and where that is not known.
        values: The most frequent values, or the outermost folders; empty where values hardly ever stand twice, and
            until they are counted.
        more: Whether there are further values, which ``/values`` finds.
    """

    name: str
    type: ColumnType
    examples: tuple[str, ...]
    rows: int | None
    about: bool
    least: str | float | None
    most: str | float | None
    values: tuple[ColumnValue, ...]
    more: bool

    __repr__ = short_repr


@dataclass(frozen=True)
class ColumnValues:
    """Values of a column that were looked for.

    Attributes:
        index_version: Version of the index.
        column: Name of the column.
        ready: Whether values are counted yet; until then none are found.
        about: Whether numbers of pictures are about so.
        values: The values, those that begin with the text first; folders in the order of their names, others the most
            frequent first.
        more: Whether there are further ones.
    """

    index_version: str
    column: str
    ready: bool
    about: bool
    values: tuple[ColumnValue, ...]
    more: bool

    __repr__ = short_repr


@dataclass(frozen=True)
class About:
    """What is searched, and the limits of a request.

    Attributes:
        name: Name of the collection.
        pictures: Number of pictures.
        captions: Number of distinct captions.
        skipped: Pictures that could not be read when the index was built.
        dimension: Dimension of a vector.
        similarity: Kind of similarity of a picture and a text.
        model: The beginning of the model's fingerprint.
        index_version: Version of the index, different for every state of it.
        problem: Sentence for whoever runs the server, where another index took the place of the one that is served.
        columns: Columns of the pictures.
        max_results: The largest k of a request.
        max_offset: The largest offset of a request.
        max_upload_bytes: Largest size in bytes of a picture that is sent.
        max_upload_pixels: Largest number of pixels of a picture that is sent.
        writable: Whether whoever asks may add and delete pictures.
        gradable: Whether whoever asks may grade how well pictures fit, mark favourites and save searches.
        calibratable: Whether whoever asks may fit the end of relevance to the grades, and remove kept queries.
        who: Name of the token that asked, under which its grades are kept; empty where tokens have no names.
        not_kept: Why favourites and saved searches are not kept; empty where they are.
        queries_kept_days: Days for which words that people search for are kept beside the index after they were asked
            last; 0 where none are kept.
        reranked_by: Kind of the model that reranks the first hits of searches with words; empty without one.
        rerank_top: Number of hits that it reranks; 0 without one.
        explains: Whether that model says which regions answered which words (``/why``).
        only_here: Whether only this machine reaches the server.
        version: Version of rungwise.
        examples: A few phrases that captions, columns or folders of several pictures share.
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
    calibratable: bool
    who: str
    not_kept: str
    queries_kept_days: int
    reranked_by: str
    rerank_top: int
    explains: bool
    only_here: bool
    version: str
    examples: tuple[str, ...]
    newest: tuple[str, ...]

    __repr__ = short_repr


@dataclass(frozen=True)
class Picture:
    """A picture of the index.

    Attributes:
        id: The picture's id, as the user gave it.
        captions: Captions of the picture.
        columns: Metadata of the file and the user's columns.
        has_file: Whether the picture can be shown.
    """

    id: str
    captions: tuple[str, ...]
    columns: Mapping[str, Value]
    has_file: bool

    __repr__ = short_repr


@dataclass(frozen=True)
class SinglePicture(Picture):
    """A picture of the index by itself.

    Attributes:
        index_version: Version of the index.
        file_name: Name of the picture's file, without folders; empty where it has none.
        path: Path of the file where only this machine reaches the server, else its folder in the collection and its
            name; empty where it has none.
    """

    index_version: str
    file_name: str
    path: str

    __repr__ = short_repr


@dataclass(frozen=True)
class FoundPicture(Picture):
    """A picture that was found.

    Attributes:
        score: Similarity of the picture; pictures that were browsed have none.
        folded: Ids of near-duplicates that the picture stands for.
        degree: Expected degree of relevance; None where that was not judged.
        rung: 1, 2 or 3 as ``band`` names them, 4 after the end of relevance; None where that was not judged.
        band: Name of how well the picture fits.
    """

    score: float | None
    folded: tuple[str, ...]
    degree: float | None
    rung: int | None
    band: Band

    __repr__ = short_repr


@dataclass(frozen=True)
class ShownEnd:
    """Where relevance ends.

    Attributes:
        shown: Number of hits before the end, counted from the start of the whole ranking.
        nothing: Whether there are none.
        belief: Belief that any picture of the index is relevant, 0..1.
        source: Method of the judgement, in one line.
        advice: What to try where little or nothing was found, a line each.
        names: The bands of the rungs 1, 2 and 3 in this answer.
        remark: One line where no picture stands out clearly, or none is like a given one; else empty.
    """

    shown: int
    nothing: bool
    belief: float
    source: str
    advice: tuple[str, ...]
    names: tuple[str, str, str]
    remark: str

    __repr__ = short_repr


@dataclass(frozen=True)
class Unknown:
    """A word of the query that the model never learnt.

    Attributes:
        word: The word as typed.
        near: Words that the model knows, nearest first.
        found: Whether a caption or a column has the word, so that full text finds it.
        misspelt: Whether it may be misspelt: neither the model nor the collection has it as a word.
        line: A sentence about the word for people.
    """

    word: str
    near: tuple[str, ...]
    found: bool
    misspelt: bool
    line: str

    __repr__ = short_repr


@dataclass(frozen=True)
class QueryTerm:
    """A part of the query, as it was understood.

    Attributes:
        kind: Kind of the term: a text, a picture of the index, or one that was sent.
        text: The text; empty for pictures.
        id: Id of the picture of the index; empty for others.
        picture: Name of the picture that was sent; empty for others.
        weight: Weight of the term; below 0 for what is wanted less.
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
        index_version: Version of the index.
        query: The text of the query as typed.
        terms: Terms of the query as they were understood, pictures included.
        reading: The understood query in one line; empty where it is one plain text.
        unknown: Words of the query that the model never learnt.
        notes: Further remarks, one line each.
        more: Whether there are further pictures.
        scale: Scores of an empty and of a full bar.
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

    __repr__ = short_repr


@dataclass(frozen=True)
class FoundSimilar(FoundPictures):
    """Pictures like one of the index.

    Attributes:
        of: The picture that others are compared with.
    """

    of: Picture

    __repr__ = short_repr


@dataclass(frozen=True)
class Caption:
    """A caption that was found.

    Attributes:
        text: Text of the caption.
        score: Similarity of the caption.
        ids: Ids of the pictures that have the caption.
    """

    text: str
    score: float
    ids: tuple[str, ...]

    __repr__ = short_repr


@dataclass(frozen=True)
class Captions:
    """Captions of the collection that fit a picture, best first.

    Attributes:
        index_version: Version of the index.
        scale: Scores of an empty and of a full bar.
        has_captions: Whether the collection has any.
        captions: Captions that fit, best first.
    """

    index_version: str
    scale: tuple[float, float]
    has_captions: bool
    captions: tuple[Caption, ...]

    __repr__ = short_repr


@dataclass(frozen=True)
class PictureGroup:
    """Pictures that belong together.

    Attributes:
        label: What they have in common, or how they were chosen.
        query: A query that finds more of them; empty where there is none.
        size: Number of pictures of the index that belong to the group.
        about: Whether that is about so, as pictures that were drawn at random say.
        items: A few of the pictures.
    """

    label: str
    query: str
    size: int
    about: bool
    items: tuple[Picture, ...]

    __repr__ = short_repr


@dataclass(frozen=True)
class PictureSample:
    """Pictures to start with.

    Attributes:
        index_version: Version of the index.
        by: Way in which the pictures were chosen.
        ready: Whether they were chosen in the requested way; groups of like pictures are computed once for every
            version of the index, and until then the sample is random.
        groups: Groups of pictures.
    """

    index_version: str
    by: By
    ready: bool
    groups: tuple[PictureGroup, ...]

    __repr__ = short_repr


@dataclass(frozen=True)
class KeptUpload:
    """A picture that was sent, and is kept for searches.

    Attributes:
        picture: Name of the picture in ``picture=`` of a search.
        width: Width in pixels.
        height: Height in pixels.
        seconds: Time for which the picture is kept after its last use, if there is room.
    """

    picture: str
    width: int
    height: int
    seconds: float


@dataclass(frozen=True)
class Changed:
    """What a change of the index did.

    Attributes:
        index_version: Version of the index after the change.
        id: Id of the picture.
        change: Kind of the change; an added picture replaces another with its id.
    """

    index_version: str
    id: str
    change: Literal["added", "replaced", "removed"]


@dataclass(frozen=True)
class GivenGrade:
    """What a person said of a picture that a search found.

    Attributes:
        query: Query of the search, as typed.
        id: Id of the picture.
        grade: The grade.
        when: Time in UTC, as ISO 8601 writes it.
        who: Name of the person; empty where none was given.
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
        more: Whether there are further grades.
        queries: Number of searches that were judged, in all.
        needed: Number of judged searches that a fit of the end of relevance needs.
    """

    grades: tuple[GivenGrade, ...]
    more: bool
    queries: int
    needed: int

    __repr__ = short_repr


@dataclass(frozen=True)
class CalibrationOutcome:
    """What fitting the end of relevance to the grades did.

    Attributes:
        index_version: Version of the index after the fit.
        queries: Number of searches that were judged.
        source: Method that judges the end from now on, in one line.
        changes: Changes for the searches that were judged, or why nothing was changed, one line each.
        kept: Whether the fit judges from now on; it does only where it does no harm on searches that it did not see.
    """

    index_version: str
    queries: int
    source: str
    changes: tuple[str, ...]
    kept: bool

    __repr__ = short_repr


@dataclass(frozen=True)
class MarkedPicture:
    """A favourite.

    Attributes:
        id: Id of the picture, which may be gone.
        when: Time of the mark in UTC, as ISO 8601 writes it.
    """

    id: str
    when: str


@dataclass(frozen=True)
class MarkedPictures:
    """All favourites.

    Attributes:
        favourites: Favourites, the newest first.
    """

    favourites: tuple[MarkedPicture, ...]

    __repr__ = short_repr


@dataclass(frozen=True)
class ListedSearch:
    """A saved search.

    Attributes:
        name: Name of the search.
        q: Its words, as typed; empty where a filter is all.
        where: Its filter, as typed; empty for none.
        when: Time at which it was saved, in UTC, as ISO 8601 writes it.
    """

    name: str
    q: str
    where: str
    when: str


@dataclass(frozen=True)
class SavedSearches:
    """All saved searches.

    Attributes:
        searches: Saved searches, by name.
    """

    searches: tuple[ListedSearch, ...]

    __repr__ = short_repr


@dataclass(frozen=True)
class ForgottenQueries:
    """That the kept queries were removed.

    Attributes:
        forgotten: Number of queries that were removed.
    """

    forgotten: int


@dataclass(frozen=True)
class Health:
    """That the server answers.

    Attributes:
        status: Always the same.
        pictures: Number of pictures that are served.
    """

    status: Literal["ok"]
    pictures: int


@dataclass(frozen=True)
class Ready:
    """That searches would be answered now.

    Attributes:
        status: Always the same.
        pictures: Number of pictures that the store of the index reports.
        problem: Sentence for whoever runs the server, where another index took the place of the one that is served.
    """

    status: Literal["ready"]
    pictures: int
    problem: str | None
