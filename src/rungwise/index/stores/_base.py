"""The contract of a store: vectors and small records under the user's ids, found by what is near to a query.

A store knows nothing of models, pictures or captions; :class:`rungwise.index.Index` keeps its pictures in one and its
captions in another.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Literal, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.core import UncheckedError, UserError
from rungwise.core.output import short_repr
from rungwise.index.filters import OWN, Where
from rungwise.index.stores._approximation import Approximation
from rungwise.index.stores._bm25 import best_by_words, word_set
from rungwise.index.stores._column_counts import StoreCounts, count_records
from rungwise.index.stores._id_sampling import smallest_keys
from rungwise.parts import Registry, concrete_below
from rungwise.similarity import Similarity

_Key = TypeVar("_Key", bound="str | tuple[str, int]")

Vectors = NDArray[np.float32]
Record = Mapping[str, Any]
"""Columns of a row: names and values that JSON can hold.

A filter sees texts, numbers, truth values and lists of texts. Keys that begin with ``rungwise.`` belong to the index,
and no filter sees them; one of them is :data:`WORDS`.
"""
WORDS = f"{OWN}words"
"""Entry of a record whose text :meth:`Store.find_words` looks through."""
LETTERS_OF_DATE = len("2020-05-31T10:20:30")
"""Number of letters of a date by which rows are ordered."""
ROWS_AT_ONCE = 4096
"""Number of rows that are read or written at a time where all of a store are."""
Side = Literal["image", "text"]
"""Side of a similarity that the rows of a store are; queries are the other one."""
Metric = Literal["cosine", "inner"]
"""How two vectors of any kind are compared, by the names that vector databases use."""


@dataclass(frozen=True)
class Row:
    """Vector, (D,) float32, and record under one id."""

    vector: Vectors
    record: Record

    __repr__ = short_repr


@dataclass(frozen=True)
class StoreHits:
    """Rows that a search of several queries found, best first.

    Attributes:
        ids: (queries,) tuples of at most k ids.
        scores: (queries,) arrays of the (found,) float32 scores that belong to them, falling.
    """

    ids: tuple[tuple[str, ...], ...]
    scores: tuple[Vectors, ...]

    __repr__ = short_repr


@dataclass(frozen=True)
class WordHits(StoreHits):
    """Rows that full text found: one list of ids and one of scores, best first, and the words of each row.

    Attributes:
        words: (found,) distinct words that each row's text holds, as :func:`~rungwise.index.stores.words_of` parts it.
    """

    words: tuple[frozenset[str], ...]

    __repr__ = short_repr


class LabelledVector(NamedTuple):
    """Vector, (D,) float32, and one text of the record, None where it has none.

    A tuple, since a search makes hundreds.
    """

    vector: Vectors
    label: str | None

    def __repr__(self) -> str:
        return short_repr(self)


@dataclass(frozen=True)
class StoreFacts:
    """A store's kind, whether it compares every row or an approximate index may miss some, and a line that says why."""

    kind: str
    exact: bool
    why: str


@dataclass(frozen=True)
class StoreSpace:
    """Bytes on the disk that a store takes, by what they are for.

    Attributes:
        rows: Rows that count, and the list of their files.
        indexes: Indexes of words, near neighbours and columns.
        earlier: Versions from before, which readers may still have open.
        free_after: Time from which on compacting frees the earlier versions; None where there are none.
    """

    rows: int
    indexes: int = 0
    earlier: int = 0
    free_after: datetime | None = None


@dataclass(frozen=True)
class ApproximateIndex:
    """The approximate index of a store, which can look more or less thoroughly.

    Attributes:
        settings: How thoroughly it looks.
        alternatives: Settings that are worth trying, the present one first.
        trying: Gives the same store with other settings for its searches; nothing is written.
        keep: Stores other settings, with which this store and all others who open it search from now on.
    """

    settings: Approximation
    alternatives: tuple[Approximation, ...]
    trying: Callable[[Approximation], Store]
    keep: Callable[[Approximation], None]

    __repr__ = short_repr


class StoreBatch(NamedTuple):
    """Rows on their way into a store: ids, (rows, D) vectors, and records, none if None."""

    ids: Sequence[str]
    vectors: ArrayLike
    records: Sequence[Record] | None = None


class Store(ABC):
    """Rows by id, each a vector and a record, and the search among them.

    * Every method that writes does all of it or nothing. What it has done survives the end of the process.
    * Rows stand in the order in which they were written. A row that is written again moves to the end.
    * Equal scores stand in the order of rows.
    * A store that another process writes to may keep answering from the state in which it was opened, until
      :meth:`refresh`. It never answers from half of a change.
    * A store whose engine cannot compare by a similarity (its ``metric`` is None, or one that the engine lacks) refuses
      when it is made. An engine that compares by ``similarity.metric`` gives back ``similarity.of_metric(scores)``.

    Attributes:
        dimension: D, the length of a vector.
        similarity: How a query and a row are compared; vectors are prepared for it (see :mod:`rungwise.similarity`).
        side: Whether the rows are images or texts, for similarities that are not symmetric.
        identity: Text that differs from that of every other store; empty for one that has none.
    """

    dimension: int
    similarity: Similarity
    side: Side
    identity: str = ""

    @property
    def half(self) -> bool:
        """Whether vectors are kept in half precision."""
        return False

    @property
    def approximate_index(self) -> ApproximateIndex | None:
        """Index of near neighbours that answers searches; None while every row is compared."""
        return None

    @abstractmethod
    def upsert(self, ids: Sequence[str], vectors: ArrayLike, records: Sequence[Record] | None = None) -> None:
        """Insert rows, or replace those whose ids are there.

        Args:
            ids: (rows,) different ids.
            vectors: (rows, D) float32, all finite.
            records: (rows,) columns; none if None.

        Raises:
            UserError: If an id stands twice, a vector does not fit, or the place cannot be written. Nothing has changed
                then.
        """

    @abstractmethod
    def delete(self, ids: Sequence[str]) -> int:
        """Delete rows; gives the number of rows deleted. Ids that no row has are passed over."""

    @abstractmethod
    def search(
        self,
        vectors: ArrayLike,
        k: int = 10,
        where: Where | None = None,
        *,
        metric: Metric | None = None,
        exact: bool = False,
    ) -> StoreHits:
        """The k rows most alike to each query.

        Args:
            vectors: (queries, D) float32, all finite.
            k: At least 1; fewer are found where fewer rows fulfil ``where``.
            where: Filter of the rows that may be found; all if None.
            metric: Metric that replaces the store's similarity, whatever length the vectors have: an image with images.
                A vector of zeros has cosine 0 with all.
            exact: Compare every row, also where the store has an approximate index.

        Raises:
            UserError: If the queries do not fit, or k is less than 1.
        """

    @abstractmethod
    def get(self, ids: Sequence[str]) -> dict[str, Row]:
        """The rows with these ids, in the order asked; ids that no row has are left out."""

    def labelled(self, ids: Sequence[str], column: str) -> dict[str, LabelledVector]:
        """Vectors of the rows with these ids, each with the text in a column of its record; as :meth:`get` otherwise.

        A store that can reads nothing else of the rows.
        """
        return {one: label_of(row, column) for one, row in self.get(ids).items()}

    @abstractmethod
    def count(self, where: Where | None = None) -> int:
        """Number of rows, or of those that fulfil ``where``."""

    @abstractmethod
    def records(self, where: Where | None = None) -> Iterator[tuple[str, Record]]:
        """Id and record of every row, or of those that fulfil ``where``, in order."""

    def columns_beside(self, known: Collection[str]) -> frozenset[str]:
        """Names of the columns that some row has a value in, beside those that are known.

        A store that can reads no record for it.
        """
        names = {name for _, record in self.records() for name, value in record.items() if value is not None}
        return frozenset(name for name in names if not name.startswith(OWN)).difference(known)

    def values(self, column: str) -> Iterator[Any]:
        """The values of a column, each at least once; a store that can reads nothing else."""
        found = (record.get(column) for _, record in self.records())
        return (one for one in found if one is not None)

    def newest(
        self, count: int, offset: int = 0, where: Where | None = None, *, by: Sequence[str] = ()
    ) -> tuple[str, ...]:
        """Ids of at most ``count`` rows, the newest first, after ``offset`` of them were passed over.

        Args:
            count: Number of ids at most.
            offset: Number of newer rows that are passed over.
            where: Filter of the rows; all if None.
            by: Columns of dates. A row is as new as the first of them says that holds a date (see :func:`date_of`);
                rows of one date stand in the order of their ids. Rows without a date come last, as do all rows where
                no column is given: those first that were written last.
        """
        rows = [(one, date_of(record, by)) for one, record in self.records(where)]
        return tuple(one for one, _ in newest_first(rows)[offset : offset + count])

    def counts(self, most: int) -> StoreCounts:
        """Counts of the columns of all rows, or of rows drawn at random where the engine cannot count so many.

        Args:
            most: Number of different values of a column whose rows are counted for each; of a column with more, no
                value is counted.
        """
        columns, rows = count_records((record for _, record in self.records()), most)
        return StoreCounts(columns, rows, rows)

    @abstractmethod
    def about(self) -> StoreFacts:
        """Describe the engine for people."""

    def ids(self) -> Iterator[str]:
        """Ids of all rows, in order; a store that can reads nothing else for it."""
        return (one for one, _ in self.records())

    def rows(self) -> Iterator[StoreBatch]:
        """All rows in order, some thousands at a time; a store that has versions gives those of one.

        Raises:
            UserError: If a row is damaged, or others have removed rows meanwhile.
        """
        ids = self.ids()
        while some := list(islice(ids, ROWS_AT_ONCE)):
            found = self.get(some)
            if lacking := next((one for one in some if one not in found), None):
                raise UserError(f"{lacking}: was removed while the rows were read; try again when nobody writes")
            vectors = np.stack([row.vector for row in found.values()])
            yield StoreBatch(some, vectors, [row.record for row in found.values()])

    def space(self) -> StoreSpace | None:
        """Bytes on the disk by what they are for; None where the engine does not tell."""
        return None

    def drawn(self, count: int) -> list[str]:
        """Ids of at most ``count`` rows that stand for all, drawn by the hashes of their ids."""
        return smallest_keys(self.ids(), count)

    def verified(self) -> str:
        """Check that each row is there once and whole, or raise a UserError; gives the result in a few words."""
        seen: set[str] = set()
        for one, _ in self.records():
            if one in seen:
                raise UserError(f"id {one!r} stands twice; the store is damaged, build the index again")
            seen.add(one)
        if len(seen) != self.count():
            raise UserError(f"{self.count()} rows, but {len(seen)} ids; the store is damaged, build the index again")
        return f"{len(seen)} rows of {self.dimension}"

    def verified_files(self) -> str:
        """Compare every file that a search may read with its checksum; gives the result in a few words.

        Raises:
            UncheckedError: If the store keeps no checksums of its files.
            UserError: If a file is not as it was written.
        """
        raise UncheckedError(
            "its engine keeps no checksums of its files; rows were compared with their own, and what finds words and"
            " near neighbours was not"
        )

    def find_words(self, words: str, k: int = 10, where: Where | None = None) -> WordHits:
        """The k rows whose text under :data:`WORDS` holds at least one of these words, best first by BM25.

        Case and accents do not count, and no language is assumed. Whatever is not a letter or a digit parts words.
        Fewer rows are found where fewer hold a word.

        Raises:
            UserError: If k is less than 1.
        """
        check_k(k)
        texts = {one: record[WORDS] for one, record in self.records(where) if isinstance(record.get(WORDS), str)}
        ids, scores = best_by_words(words, texts, k)
        return WordHits((ids,), (scores,), tuple(word_set(texts[one]) for one in ids))

    def compact(self) -> None:  # noqa: B027  # a store that wastes no place needs none
        """Free the space of deleted rows, and order what speeds up a search."""

    def upsert_batches(self, batches: Iterable[StoreBatch]) -> None:
        """:meth:`upsert` of rows that come batch by batch, more of them than memory holds.

        One batch after the other becomes whole; a store that can makes all of them appear at once.
        """
        for batch in batches:
            self.upsert(*batch)

    def refresh(self) -> None:  # noqa: B027  # a store that always answers from its newest state needs none
        """See what other processes have written since the store was opened."""

    def close(self) -> None:  # noqa: B027  # nor does one that holds nothing open
        """Give back what the store holds open; nothing may be asked of it afterwards."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class NamedStore(Store):
    """Base of stores of your own, which are named once their module is imported (``store=``, ``--store``).

    A store lies in a folder of its own within that of the index, with files but no folders in it. It passes the
    contract of :class:`Store`.

    Attributes:
        kind: Name of the store.
    """

    kind: ClassVar[str] = ""

    @classmethod
    @abstractmethod
    def create(cls, folder: Path, dimension: int, similarity: Similarity, side: Side = "image") -> Self:
        """Make an empty store in a folder, which is made too.

        Args:
            folder: Folder of the store. It may be moved before the store is opened.
            dimension: D, the length of a vector.
            similarity: How queries and rows are compared.
            side: Side of the similarity that the rows are.

        Raises:
            UserError: If the store cannot compare by the similarity, or the folder cannot be written.
        """

    @classmethod
    @abstractmethod
    def open(cls, folder: Path) -> Self:
        """Open the store that :meth:`create` made.

        Raises:
            UserError: If there is none, or it is damaged.
        """


STORES: Registry[NamedStore] = Registry("stores", "store", lambda: concrete_below(NamedStore), lambda store: store.kind)
"""Stores of people's own by name."""


def label_of(row: Row, column: str) -> LabelledVector:
    """Vector of a row, and the text in a column of its record."""
    label = row.record.get(column)
    return LabelledVector(row.vector, label if isinstance(label, str) else None)


def date_of(record: Record, by: Sequence[str]) -> str:
    """The first of these entries of a record that holds a text which begins with a digit, to its second; else empty.

    >>> date_of({"taken": "yes", "modified": "2020-05-31T10:20:30Z"}, ["taken", "modified"])
    '2020-05-31T10:20:30'
    """
    texts = (record.get(name) for name in by)
    return next((one for one in texts if isinstance(one, str) and "0" <= one[:1] <= "9"), "")[:LETTERS_OF_DATE]


def newest_first(rows: Iterable[tuple[_Key, str]]) -> list[tuple[_Key, str]]:
    """Rows, given as they were written, each with its date: see :meth:`Store.newest`.

    >>> newest_first([("b", "2020"), ("x", ""), ("a", "2020"), ("y", ""), ("c", "2021")])
    [('c', '2021'), ('a', '2020'), ('b', '2020'), ('y', ''), ('x', '')]
    """
    written = list(rows)
    by_id = sorted(row for row in written if row[1])
    return [*sorted(by_id, key=lambda row: row[1], reverse=True), *(row for row in reversed(written) if not row[1])]


def check_k(k: int) -> None:
    """Refuse a search for less than 1 result."""
    if k < 1:
        raise UserError(f"k is {k}; ask for at least 1 result")


def checked_queries(vectors: ArrayLike, dimension: int, k: int) -> Vectors:
    """(queries, D) float32 queries of a search; refuses another shape, NaN or infinity, and k less than 1.

    >>> checked_queries([[1, 2]], 3, 1)
    Traceback (most recent call last):
    rungwise.core.UserError: vectors here have dimension 3, the query's shape is (1, 2); encode it with the...
    """
    check_k(k)
    queries = np.asarray(vectors, dtype=np.float32)
    if queries.ndim != 2 or queries.shape[1] != dimension:
        raise UserError(
            f"vectors here have dimension {dimension}, the query's shape is {queries.shape}; encode it with the model"
            " that encoded the rest"
        )
    if not np.isfinite(queries).all():
        raise UserError("the query's vector holds NaN or infinity; the model is damaged or its input was")
    return queries


def checked_rows(batch: StoreBatch, dimension: int) -> tuple[tuple[str, ...], Vectors, tuple[Record, ...]]:
    """Ids, (rows, D) float32 vectors and records of a batch, as a store takes them.

    Raises:
        UserError: If their numbers differ, an id stands twice or is no text, or a vector does not fit.
    """
    ids, vectors = tuple(batch.ids), np.asarray(batch.vectors, dtype=np.float32)
    records = tuple(batch.records) if batch.records is not None else ({},) * len(ids)
    if vectors.shape != (len(ids), dimension) or len(records) != len(ids):
        raise UserError(
            f"{len(ids)} ids, vectors of shape {vectors.shape} and {len(records)} records; give one of each for every"
            f" row, vectors of dimension {dimension}"
        )
    if odd := [one for one in ids if not isinstance(one, str)]:
        raise UserError(f"id {odd[0]!r} is no text; ids are texts")
    seen: set[str] = set()
    for one in ids:
        if one in seen:
            raise UserError(f"id {one!r} stands twice; give every row an id of its own")
        seen.add(one)
    unfit = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if unfit.size:
        raise UserError(f"{ids[unfit[0]]}: its vector holds NaN or infinity; the model's weights are damaged")
    return ids, vectors, records
