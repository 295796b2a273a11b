"""What sources share that score by words: tokeniser, document frequencies, index, leave-one-out."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.language.tokenisers import Tokeniser, ptb
from rungwise.relevance.base import Block, CaptionSource, Direction, Frequencies, Positions
from rungwise.relevance.inverted_index import InvertedIndex, Rows
from rungwise.relevance.ngrams import DocumentFrequencies, NgramCounts


class Counted:
    """Tokenised captions with the inverse document frequency of each n-gram.

    Attributes:
        counts: The captions' n-grams.
        frequencies: Document frequencies, of the captions themselves unless given.
        idf: Per order, (n-grams,) float64 ``log(images) - log(max(1, document frequency))``.

    >>> counted = Counted(["a dog", "a cat"], np.array([0, 1]), tokeniser=str.split, frequencies=None, orders=1)
    >>> counted.idf[0].round(3).tolist()
    [0.0, 0.693, 0.693]
    """

    def __init__(
        self,
        captions: Sequence[str],
        image_of_caption: Positions,
        *,
        tokeniser: Tokeniser,
        frequencies: DocumentFrequencies | None,
        orders: int,
    ) -> None:
        self.given = frequencies is not None
        self.counts = NgramCounts(captions, tokeniser, orders)
        self.frequencies = frequencies or DocumentFrequencies.counted(self.counts, image_of_caption)
        images = max(1, self.frequencies.images)
        self.idf = [np.log(images) - np.log(np.maximum(1, df)) for df in self.frequencies.look_up(self.counts)]

    @property
    def frequencies_from(self) -> Frequencies:
        """See :attr:`rungwise.relevance.base.Degrees.frequencies_from`."""
        if not self.given:
            return "collection"
        return "train" if self.frequencies.origin == "train" else "unknown"

    def options(self) -> Mapping[str, Any]:
        """The document frequencies, where they do not follow from the captions."""
        return {"document_frequencies": self.frequencies.content_hash()} if self.given else {}


class RowsSource(CaptionSource):
    """Base of the sources whose degrees are products of sparse rows, averaged over all references of an image.

    Args:
        captions: (captions,) texts.
        image_of_caption: (captions,) the position of each caption's image.
        leave_one_out: A caption is no reference for itself; without another reference its own image scores 0.
        images: Number of images, where the last ones have no caption.
        threads: None takes the processor's.
    """

    _rows: Rows

    def __init__(
        self,
        captions: Sequence[str],
        image_of_caption: Sequence[int] | ArrayLike,
        *,
        leave_one_out: bool = False,
        images: int | None = None,
        threads: int | None = None,
    ) -> None:
        super().__init__(captions, image_of_caption, images=images)
        self.leave_one_out = leave_one_out
        self._threads = threads
        self._latest: tuple[Positions, InvertedIndex] | None = None
        self._own: Block | None = None

    @property
    def weights(self) -> Rows:
        """The captions as sparse rows, all that degrees are computed from."""
        return self._rows

    def block(self, images: ArrayLike, captions: ArrayLike) -> Block:
        """(len(images), len(captions)) float32 degrees.

        The index of the images that were asked last is kept: ask all captions of some images before the next images.
        """
        rows, columns = self.positions(images, captions)
        distinct, place = np.unique(rows, return_inverse=True)
        scores = self._index(distinct).scores(columns)
        self._leave_out(distinct, columns, scores)
        if len(distinct) != len(rows) or (distinct != rows).any():
            scores = scores[:, place]
        return np.ascontiguousarray(scores.T)

    def dense(self) -> Block:
        """(images, captions) float32 degrees; the array lies in memory caption by caption."""
        everything, captions = np.arange(self.shape[0]), np.arange(self.shape[1])
        scores = self._index(everything).scores(captions)
        self._leave_out(everything, captions, scores)
        return scores.T

    def topk(self, k: int, direction: Direction = "i2t") -> tuple[Positions, Block]:
        """See :meth:`rungwise.relevance.base.Degrees.topk`; memory does not grow with the number of pairs."""
        _, candidates = self.asked(k, direction)
        everything = np.arange(self.shape[0])
        index = self._index(everything)
        search = index.best_captions if direction == "i2t" else index.best_documents
        return search(min(k, candidates), lambda captions, scores: self._leave_out(everything, captions, scores))

    def _index(self, images: Positions) -> InvertedIndex:
        if self._latest is None or not np.array_equal(self._latest[0], images):
            references = np.concatenate([self.references_of(image) for image in images] or [self._order[:0]])
            counts = self._starts[images + 1] - self._starts[images]
            self._latest = (images, InvertedIndex(self._rows, references, counts, self._threads))
        return self._latest[1]

    def _leave_out(self, images: Positions, captions: Positions, scores: Block) -> None:
        """Give captions their score without themselves, where their own image (ascending positions) is asked."""
        if not self.leave_one_out or not len(images):
            return
        if self._own is None:
            self._own = self._without_themselves()
        own = self.image_of_caption[captions]
        place = np.minimum(np.searchsorted(images, own), len(images) - 1)
        here = np.flatnonzero(images[place] == own)
        scores[here, place[here]] = self._own[captions[here]]

    def _without_themselves(self) -> Block:
        """(captions,) score of each with its own image, whose other captions are the references.

        Every caption is asked against a document of its own. Images are taken a few at a time, since a block holds
        all captions of some images against all documents of theirs.
        """
        own = np.zeros(self.shape[1], np.float32)
        run = 64
        for start in range(0, self.shape[0], run):
            groups = [self.references_of(image) for image in range(start, min(start + run, self.shape[0]))]
            captions = np.concatenate(groups)
            others = [group[group != caption] for group in groups for caption in group]
            if not len(captions):
                continue
            counts = np.array([len(other) for other in others], np.int64)
            index = InvertedIndex(self._rows, np.concatenate(others), counts, threads=1)
            own[captions] = index.scores(captions).diagonal()
        return own


class ConsensusSource(RowsSource):
    """Base of the metrics that count words: give :meth:`rows`.

    Args:
        captions: (captions,) texts.
        image_of_caption: (captions,) the position of each caption's image.
        tokenizer: Text to tokens.
        document_frequencies: Of a corpus; None counts the images of these captions.
        leave_one_out: A caption is no reference for itself; without another reference its own image scores 0.
        images: Number of images, where the last ones have no caption.
        threads: None takes the processor's.
    """

    ORDERS: int

    def __init__(
        self,
        captions: Sequence[str],
        image_of_caption: Sequence[int] | ArrayLike,
        *,
        tokenizer: Tokeniser = ptb,
        document_frequencies: DocumentFrequencies | None = None,
        leave_one_out: bool = False,
        images: int | None = None,
        threads: int | None = None,
    ) -> None:
        super().__init__(captions, image_of_caption, leave_one_out=leave_one_out, images=images, threads=threads)
        self._counted = Counted(
            self.captions,
            self.image_of_caption,
            tokeniser=tokenizer,
            frequencies=document_frequencies,
            orders=self.ORDERS,
        )
        self._rows = self.rows(self._counted)

    @abstractmethod
    def rows(self, counted: Counted) -> Rows:
        """Captions as sparse rows whose product is the score against one reference."""

    @property
    def document_frequencies(self) -> DocumentFrequencies:
        """Those in use, to save or to hand to another source."""
        return self._counted.frequencies

    @property
    def frequencies_from(self) -> Frequencies:
        """See :attr:`rungwise.relevance.base.Degrees.frequencies_from`."""
        return self._counted.frequencies_from

    def options(self) -> Mapping[str, Any]:
        """See :meth:`rungwise.relevance.base.Degrees.options`; the tokeniser shows in :meth:`hashed`."""
        return {"leave_one_out": self.leave_one_out, **self._counted.options()}

    def hashed(self) -> Iterator[bytes]:
        """Captions, ownership and tokens."""
        yield from super().hashed()
        yield from self._counted.counts.hashed()


def sparse_rows(
    caption: NDArray[Any],
    columns: NDArray[Any],
    asked: NDArray[Any],
    answers: NDArray[Any],
    *,
    lengths: NDArray[Any],
    penalty: NDArray[Any],
) -> Rows:
    """Entries in any order as :class:`Rows`; entries that weigh nothing are left out.

    >>> one = np.ones(3)
    >>> sparse_rows(np.array([1, 0, 1]), np.array([5, 7, 2]), one, one, lengths=np.zeros(2), penalty=one[:1]).starts
    array([0, 1, 3])
    """
    kept = np.flatnonzero(answers)
    order = kept[np.argsort(caption[kept], kind="stable")]
    starts = np.concatenate(([0], np.cumsum(np.bincount(caption[order], minlength=len(lengths)))))
    return Rows(
        starts.astype(np.int64),
        columns[order].astype(np.int32),
        asked[order].astype(np.float32),
        answers[order].astype(np.float32),
        lengths.astype(np.int32),
        penalty.astype(np.float32),
        int(columns.max(initial=-1)) + 1,
    )


def norms_of(caption: NDArray[Any], weights: NDArray[Any], captions: int) -> NDArray[np.float64]:
    """(captions,) length of each caption's vector of weights.

    >>> norms_of(np.array([0, 0, 2]), np.array([3.0, 4.0, 1.0]), 3)
    array([5., 0., 1.])
    """
    norms: NDArray[np.float64] = np.sqrt(np.bincount(caption, weights=weights**2, minlength=captions))
    return norms


def unit(caption: NDArray[Any], weights: NDArray[Any], captions: int) -> NDArray[np.float64]:
    """(entries,) weights of vectors of length 1; a vector of zeros stays.

    >>> unit(np.array([0, 0, 2]), np.array([3.0, 4.0, 0.0]), 3)
    array([0.6, 0.8, 0. ])
    """
    norms = norms_of(caption, weights, captions)[caption]
    scaled: NDArray[np.float64] = np.divide(weights, norms, out=np.zeros_like(norms), where=norms > 0)
    return scaled
