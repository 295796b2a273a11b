"""All pairs of documents and captions as sparse products over an inverted index: exact, float32, in threads.

A document is a set of references (an image's captions, or one caption), and a caption h scores

    R(d, h) = mean over references r of d, penalty(|length_h - length_r|) * sum over columns c, asked_h[c] * answer_r[c]

The penalty depends on lengths only, so captions are taken by length, and for each length the references of a document
fold into one weighted posting a column. A caption then adds the postings of its columns. Columns that a large part of
the documents have (the word "a") are laid out in full, since adding a row goes many times faster than scattering.

The terms of a pair are added in the order of the caption's columns whatever is asked together, so that a pair has the
same bits in every block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from queue import SimpleQueue
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rungwise.core.compute import SORTING, Best, cores, in_threads, kernel
from rungwise.core.output import short_repr
from rungwise.relevance._base import Block, Positions

_FULL_SHARE = 8
"""A column that at least one document in this many has is laid out in full."""
_BUFFER = 1 << 19
"""Number of scores that one thread holds at a time while it looks for the best."""


class _Postings(NamedTuple):
    """The references' entries by column, those of one document and column in one posting.

    Attributes:
        slot: (width,) int32 number, from 1, of each column that a reference has; 0 for the others.
        column_starts: (columns + 1,) int64, where the postings of each column begin.
        document: (postings,) int32 document of each posting.
        entry_starts: (postings + 1,) int64, where the entries of each posting begin.
        value: (entries,) float32 answers, each divided by the number of its document's references.
        reference_length: (entries,) int32 length of the reference.
    """

    slot: NDArray[np.int32]
    column_starts: Positions
    document: NDArray[np.int32]
    entry_starts: Positions
    value: Block
    reference_length: NDArray[np.int32]


class _Folded(NamedTuple):
    """Postings for captions of one length.

    Attributes:
        values: (postings,) float32 values, penalties included.
        full: (columns laid out in full, documents) float32 values.
        full_of: (columns,) int32 row of each column in ``full``; -1 where it has none.
    """

    values: Block
    full: Block
    full_of: NDArray[np.int32]


@dataclass(frozen=True)
class SparseCaptions:
    """Captions as sparse rows.

    Attributes:
        starts: (captions + 1,) int64, where each row begins.
        columns: (entries,) int32 column of each entry.
        asked: (entries,) float32 weights of a caption that is scored.
        answers: (entries,) float32 weights of a caption that is a reference.
        lengths: (captions,) int32; all 0 where length does not matter.
        penalty: (longest difference + 1,) float32 factor by difference of lengths.
        width: Number of columns.
    """

    starts: Positions
    columns: NDArray[np.int32]
    asked: Block
    answers: Block
    lengths: NDArray[np.int32]
    penalty: Block
    width: int

    __repr__ = short_repr


class InvertedIndex:
    """Documents by column: postings of their references, exact scores of captions against all of them.

    Args:
        rows: All captions.
        references: Positions of the captions that are references, those of one document next to each other.
        counts: (documents,) number of references of each document; a document without references scores 0.
        threads: Highest number of threads; None takes one for each core.

    >>> rows = SparseCaptions(np.array([0, 1, 3]), np.array([0, 0, 1], np.int32), np.ones(3, np.float32),
    ...     np.array([1, 2, 3], np.float32), np.zeros(2, np.int32), np.ones(1, np.float32), width=2)
    >>> InvertedIndex(rows, references=np.array([0, 1]), counts=np.array([2])).scores(np.array([0, 1]))
    array([[1.5],
           [3. ]], dtype=float32)
    """

    def __init__(
        self, rows: SparseCaptions, references: Positions, counts: Positions, threads: int | None = None
    ) -> None:
        self._rows = rows
        self._documents = len(counts)
        self._threads = threads
        self._postings: _Postings = _build(
            rows.starts,
            rows.columns,
            rows.answers,
            rows.lengths,
            np.ascontiguousarray(references, np.int64),
            np.ascontiguousarray(counts, np.int64),
            np.zeros(rows.width, np.int32),
        )
        sizes = np.diff(self._postings.column_starts)
        self._full = np.flatnonzero(sizes * _FULL_SHARE >= max(1, self._documents))
        self._full_of = np.full(len(sizes), -1, np.int32)
        self._full_of[self._full] = np.arange(len(self._full))

    def scores(self, captions: Positions) -> Block:
        """(len(captions), documents) float32 scores."""
        out = np.empty((len(captions), self._documents), np.float32)
        for places, folded in self._by_length(captions):

            def score(low: int, high: int, places: Positions = places, folded: _Folded = folded) -> None:
                self._score(captions, places[low:high], folded, out, places[low:high])

            in_threads(score, len(places), len(places) * self._documents, self._threads)
        return out

    def best_documents(
        self, best: Best, patch: Callable[[Positions, Block], None], captions: Positions, first: int = 0
    ) -> None:
        """Offer all documents as candidates to captions.

        Args:
            best: Collects the best documents of each caption.
            patch: Corrects (captions, documents) scores in place before they are ranked.
            captions: Positions of the captions that are queries.
            first: Position of this index's first document among the documents of all indexes offered to ``best``.
        """
        run = max(1, _BUFFER // max(1, self._documents))
        # Buffers are handed around: where memory is mapped anew for every part, that takes longer than the scores.
        buffers: SimpleQueue[Block] = SimpleQueue()

        def rank(places: Positions, folded: _Folded) -> None:
            buffer = np.empty((run, self._documents), np.float32) if buffers.empty() else buffers.get()
            for start in range(0, len(places), run):
                part = places[start : start + run]
                scores = buffer[: len(part)]
                self._score(captions, part, folded, scores, np.arange(len(part)))
                patch(captions[part], scores)
                best.offer(part, first, scores)
            buffers.put(buffer)

        for places, folded in self._by_length(captions):

            def work(low: int, high: int, places: Positions = places, folded: _Folded = folded) -> None:
                rank(places[low:high], folded)

            in_threads(work, len(places), len(places) * self._documents, self._threads)

    def best_captions(self, k: int, patch: Callable[[Positions, Block], None]) -> tuple[Positions, Block]:
        """The k best captions of every document, best first, ties by the lower position.

        ``k`` is at most the number of captions; ``patch`` corrects scores as in :meth:`best_documents`.
        """
        everything = np.arange(len(self._rows.lengths))
        values = np.full((self._documents, k), -np.inf, np.float32)
        indices = np.full((self._documents, k), -1, np.int64)
        run = max(1, 4 * (self._threads or cores()) * _BUFFER // max(1, self._documents))
        buffer = np.empty((run, self._documents), np.float32)

        def offer(places: Positions, folded: _Folded) -> None:
            scores = buffer[: len(places)]

            def score(low: int, high: int) -> None:
                self._score(everything, places[low:high], folded, scores, np.arange(low, high))

            in_threads(score, len(places), scores.size, self._threads)
            patch(places, scores)
            in_threads(
                partial(_keep_in_columns, scores, places, values, indices), self._documents, scores.size, self._threads
            )

        for places, folded in self._by_length(everything):
            for start in range(0, len(places), run):
                offer(places[start : start + run], folded)
        in_threads(partial(_sort_heaps, values, indices), self._documents, SORTING * values.size, self._threads)
        return indices, values

    def _by_length(self, captions: Positions) -> Iterator[tuple[Positions, _Folded]]:
        """For each length: places in ``captions`` of that length, with the postings folded for it."""
        lengths = self._rows.lengths[captions]
        order = np.argsort(lengths, kind="stable")
        edges = np.flatnonzero(np.diff(lengths[order], prepend=-1, append=-1))
        for low, high in pairwise(edges):
            yield order[low:high], self._folded(int(lengths[order[low]]))

    def _folded(self, length: int) -> _Folded:
        values = np.empty(len(self._postings.document), np.float32)
        _fold(self._postings, self._rows.penalty, length, values)
        full = np.zeros((len(self._full), self._documents), np.float32)
        _lay_out(self._full, self._postings, values, full)
        return _Folded(values, full, self._full_of)

    def _score(self, captions: Positions, places: Positions, folded: _Folded, out: Block, into: Positions) -> None:
        rows = self._rows
        _score_rows(captions[places], rows.starts, rows.columns, rows.asked, self._postings, folded, out, into)


@kernel
def _build(starts, columns, answers, lengths, references, counts, slot):  # type: ignore[no-untyped-def]
    """Counting sort of the references' entries by column, then one posting for the entries of one document."""
    width = 0
    total = 0
    for reference in references:
        for entry in range(starts[reference], starts[reference + 1]):
            total += 1
            if slot[columns[entry]] == 0:
                width += 1
                slot[columns[entry]] = width
    ends = np.zeros(width + 1, np.int64)
    for reference in references:
        for entry in range(starts[reference], starts[reference + 1]):
            ends[slot[columns[entry]]] += 1
    for column in range(width):
        ends[column + 1] += ends[column]
    place = ends[:-1].copy()
    owner = np.empty(total, np.int32)
    value = np.empty(total, np.float32)
    reference_length = np.empty(total, np.int32)
    first = 0
    for document in range(len(counts)):
        for reference in references[first : first + counts[document]]:
            for entry in range(starts[reference], starts[reference + 1]):
                column = slot[columns[entry]] - 1
                at = place[column]
                place[column] = at + 1
                owner[at] = document
                value[at] = answers[entry] / np.float32(counts[document])
                reference_length[at] = lengths[reference]
        first += counts[document]
    column_starts = np.empty(width + 1, np.int64)
    entry_starts = np.empty(total + 1, np.int64)
    postings = 0
    for column in range(width):
        column_starts[column] = postings
        for entry in range(ends[column], ends[column + 1]):
            if entry == ends[column] or owner[entry] != owner[entry - 1]:
                entry_starts[postings] = entry
                postings += 1
    column_starts[width] = postings
    entry_starts[postings] = total
    document_of = np.empty(postings, np.int32)
    for posting in range(postings):
        document_of[posting] = owner[entry_starts[posting]]
    return _Postings(slot, column_starts, document_of, entry_starts[: postings + 1].copy(), value, reference_length)


@kernel
def _fold(postings, penalty, length, folded):  # type: ignore[no-untyped-def]
    entry_starts, value, reference_length = postings.entry_starts, postings.value, postings.reference_length
    for posting in range(len(folded)):
        total = np.float32(0)
        for entry in range(entry_starts[posting], entry_starts[posting + 1]):
            total += value[entry] * penalty[abs(length - reference_length[entry])]
        folded[posting] = total


@kernel
def _lay_out(chosen, postings, folded, full):  # type: ignore[no-untyped-def]
    column_starts, document = postings.column_starts, postings.document
    for row in range(len(chosen)):
        for posting in range(column_starts[chosen[row]], column_starts[chosen[row] + 1]):
            full[row, document[posting]] = folded[posting]


@kernel
def _score_rows(asked, starts, columns, weights, postings, folded, out, into):  # type: ignore[no-untyped-def]
    slot, column_starts, document = postings.slot, postings.column_starts, postings.document
    posted, full, full_of = folded.values, folded.full, folded.full_of
    for row in range(len(asked)):
        scores = out[into[row]]
        scores[:] = 0
        for entry in range(starts[asked[row]], starts[asked[row] + 1]):
            column = slot[columns[entry]] - 1
            if column < 0:
                continue
            weight = weights[entry]
            if full_of[column] >= 0:
                values = full[full_of[column]]
                for each in range(len(scores)):
                    scores[each] += weight * values[each]
            else:
                for posting in range(column_starts[column], column_starts[column + 1]):
                    scores[document[posting]] += weight * posted[posting]


@kernel
def _beats(value, index, other, other_index):  # type: ignore[no-untyped-def]
    return value > other or (value == other and (other_index < 0 or index < other_index))


@kernel
def _replace_worst(values, indices, size, value, index):  # type: ignore[no-untyped-def]
    """Sift a new item down from the root of a heap whose root is its worst item."""
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and _beats(values[child], indices[child], values[child + 1], indices[child + 1]):
            child += 1
        if not _beats(value, index, values[child], indices[child]):
            break
        values[at], indices[at] = values[child], indices[child]
        at = child
    values[at], indices[at] = value, index


@kernel
def _keep_in_columns(scores, captions, values, indices, low, high):  # type: ignore[no-untyped-def]
    for row in range(len(scores)):
        caption = captions[row]
        for column in range(low, high):
            value = scores[row, column]
            if value >= values[column, 0] and _beats(value, caption, values[column, 0], indices[column, 0]):
                _replace_worst(values[column], indices[column], values.shape[1], value, caption)


@kernel
def _sort_heaps(values, indices, low, high):  # type: ignore[no-untyped-def]
    """Turn every row from a heap into descending order: the worst goes to the end, again and again."""
    for row in range(low, high):
        kept, kept_index = values[row], indices[row]
        for size in range(len(kept) - 1, 0, -1):
            worst, worst_index = kept[0], kept_index[0]
            last, last_index = kept[size], kept_index[size]
            kept[size], kept_index[size] = worst, worst_index
            _replace_worst(kept, kept_index, size, last, last_index)
