"""What the word-counting sources share: tokens, document frequencies, sparse rows and leave-one-out scores."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.core.compute import Best, Share, in_turn
from rungwise.language import stemmed
from rungwise.language.tokenisers import Tokeniser, name_of, ptb
from rungwise.relevance._base import Block, Direction, Frequencies, Positions
from rungwise.relevance._captions import CaptionSource
from rungwise.relevance.lexical._inverted_index import InvertedIndex, SparseCaptions
from rungwise.relevance.lexical._ngram_counts import CAPTIONS, vocabulary
from rungwise.relevance.lexical._ngrams import DocumentFrequencies, Integers, NgramCounts


@dataclass(frozen=True)
class NgramWeights:
    """Weights of n-grams that are common to all captions.

    Attributes:
        idf: Per order, (n-grams,) float64 ``log(images) - log(max(1, document frequency))``.
        most: Per order, (n-grams,) the highest count of each n-gram in a single caption.
        longest: Tokens of the longest caption.
    """

    idf: Sequence[NDArray[np.float64]]
    most: Sequence[Integers]
    longest: int


RowsOf = Callable[[NgramCounts, NgramWeights], SparseCaptions]
"""Turns n-gram counts into sparse rows; a function of a module or a class, which other processes can import."""


class Counted:
    """Tokenised captions with the inverse document frequency of each n-gram, by default counted in these captions."""

    def __init__(
        self,
        captions: Sequence[str],
        image_of_caption: Positions,
        *,
        tokeniser: Tokeniser,
        frequencies: DocumentFrequencies | None,
        orders: int,
        share: Share = in_turn,
    ) -> None:
        self.given = frequencies is not None
        self.vocabulary = vocabulary(captions, image_of_caption, tokeniser, orders, share)
        self.frequencies = frequencies or self.vocabulary.document_frequencies()
        images = max(1, self.frequencies.images)
        idf = [np.log(images) - np.log(np.maximum(1, df)) for df in self.frequencies.look_up(self.vocabulary)]
        self.weights = NgramWeights(idf, self.vocabulary.most, int(self.vocabulary.lengths.max(initial=0)))
        self._share = share

    def rows(self, of: RowsOf) -> SparseCaptions:
        """All captions as sparse rows, made in parts of :data:`CAPTIONS` captions."""
        vocabulary = self.vocabulary
        ends = np.cumsum(vocabulary.lengths)
        starts = range(0, max(1, len(ends)), CAPTIONS)

        def parts() -> Iterator[_Captions]:
            for start in starts:
                lengths = vocabulary.lengths[start : start + CAPTIONS]
                before = int(ends[start] - lengths[0]) if len(lengths) else 0
                yield _Captions(lengths, vocabulary.tokens[before : before + int(lengths.sum())])

        common = _RowsOf(of, vocabulary.words, vocabulary.keys, self.weights)
        found = dict(self._share(_rows_of_some, common, parts()))
        return joined([found[number] for number in sorted(found)])

    @property
    def frequencies_from(self) -> Frequencies:
        """Whose captions the document frequencies count."""
        if not self.given:
            return "collection"
        return "train" if self.frequencies.origin == "train" else "unknown"

    def options(self) -> Mapping[str, Any]:
        """The hash of document frequencies that were given; nothing where they follow from the captions."""
        return {"document_frequencies": self.frequencies.content_hash()} if self.given else {}


def tokeniser_choice(tokeniser: Tokeniser) -> Mapping[str, str]:
    """The tokeniser as an entry of a source's choices: its name, or no entry for the default :func:`ptb`."""
    return {} if tokeniser is ptb else {"tokenizer": name_of(tokeniser)}


@dataclass(frozen=True)
class _Captions:
    """Consecutive captions in tokens."""

    lengths: Integers
    tokens: NDArray[np.int32]


@dataclass(frozen=True)
class _RowsOf:
    """Data for making rows, the same for every part of the captions."""

    of: RowsOf
    words: Sequence[str]
    keys: Sequence[Integers]
    weights: NgramWeights


def _rows_of_some(common: _RowsOf, part: _Captions) -> SparseCaptions:
    counts = NgramCounts.known(common.words, common.keys, part.tokens.astype(np.int64), part.lengths)
    return common.of(counts, common.weights)


_IMAGES = 1 << 15
"""Number of images that are ranked at a time."""


class RowsSource(CaptionSource):
    """Base of the sources whose degrees are products of sparse rows, averaged over all references of an image.

    Args:
        captions: (captions,) texts; None where only ranking is needed.
        image_of_caption: (captions,) the position of each caption's image.
        leave_one_out: A caption is no reference for itself; without another reference its own image scores 0.
        images: Number of images, where the last ones have no caption.
    """

    _rows: SparseCaptions

    def __init__(
        self,
        captions: Sequence[str] | None,
        image_of_caption: Sequence[int] | ArrayLike,
        *,
        leave_one_out: bool = False,
        images: int | None = None,
    ) -> None:
        super().__init__(captions, image_of_caption, images=images)
        self.leave_one_out = leave_one_out
        self._latest: tuple[Positions, InvertedIndex] | None = None
        self._own = np.zeros(self.shape[1], np.float32)
        self._known = np.zeros(self.shape[0], np.bool_)

    @property
    def weights(self) -> SparseCaptions:
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

    def topk(self, k: int, direction: Direction = "i2t", queries: range | None = None) -> tuple[Positions, Block]:
        """The k most relevant candidates of every query; memory does not grow with the number of pairs.

        Images are taken some at a time, so that their index is small and the scores of a caption fit into a cache.
        """
        asked, candidates = self.queries(k, direction, queries)
        best = Best(len(asked), k, candidates)
        those = np.arange(asked.start, asked.stop)
        if self.leave_one_out:
            self._know(those if direction == "i2t" else np.unique(self.image_of_caption[those]))
        if direction == "i2t":
            for images in _runs(asked):
                place = slice(images[0] - asked.start, images[-1] + 1 - asked.start)
                found = self._index_of(images).best_captions(min(k, candidates), partial(self._leave_out, images))
                best.positions[place], best.scores[place] = found
        else:
            for images in _runs(range(candidates)):
                patch = partial(self._leave_out, images)
                self._index_of(images).best_documents(best, patch, those, int(images[0]))
        return best.positions, best.scores

    def _index(self, images: Positions) -> InvertedIndex:
        if self._latest is None or not np.array_equal(self._latest[0], images):
            self._latest = (images, self._index_of(images))
        return self._latest[1]

    def _index_of(self, images: Positions) -> InvertedIndex:
        references = np.concatenate([self.references_of(image) for image in images] or [self._order[:0]])
        counts = self._starts[images + 1] - self._starts[images]
        return InvertedIndex(self._rows, references, counts)

    def _leave_out(self, images: Positions, captions: Positions, scores: Block) -> None:
        """Give captions their score without themselves, where their own image (ascending positions) is asked."""
        if not self.leave_one_out or not len(images):
            return
        own = self.image_of_caption[captions]
        place = np.minimum(np.searchsorted(images, own), len(images) - 1)
        here = np.flatnonzero(images[place] == own)
        self._know(np.unique(own[here]))
        scores[here, place[here]] = self._own[captions[here]]

    def _know(self, images: Positions) -> None:
        """Score each caption of some images with its own image, whose other captions are the references.

        Images are taken a few at a time: a block holds all captions of some images against one document for each of
        them.
        """
        unknown = images[~self._known[images]]
        run = 64
        for start in range(0, len(unknown), run):
            groups = [self.references_of(image) for image in unknown[start : start + run]]
            captions = np.concatenate(groups)
            if not len(captions):
                continue
            others = [group[group != caption] for group in groups for caption in group]
            counts = np.array([len(other) for other in others], np.int64)
            index = InvertedIndex(self._rows, np.concatenate(others), counts, threads=1)
            self._own[captions] = index.scores(captions).diagonal()
        self._known[unknown] = True

    def grain(self, direction: Direction) -> int:
        """1: a pair has the same bits in every block."""
        return 1


class ConsensusSource(RowsSource):
    """Base of the metrics that count words: give :meth:`rows`.

    Args:
        captions: (captions,) texts.
        image_of_caption: (captions,) the position of each caption's image.
        tokenizer: Text to tokens.
        stemming: Language whose stems stand for the tokens; None keeps the tokens.
        document_frequencies: Frequencies counted in another corpus; None counts the images of these captions.
        leave_one_out: A caption is no reference for itself; without another reference its own image scores 0.
        images: Number of images, where the last ones have no caption.
        share: Executor that counts the captions' n-grams and weighs them, some captions at a time.
    """

    ORDERS: int

    def __init__(
        self,
        captions: Sequence[str],
        image_of_caption: Sequence[int] | ArrayLike,
        *,
        tokenizer: Tokeniser = ptb,
        stemming: str | None = None,
        document_frequencies: DocumentFrequencies | None = None,
        leave_one_out: bool = False,
        images: int | None = None,
        share: Share = in_turn,
    ) -> None:
        super().__init__(captions, image_of_caption, leave_one_out=leave_one_out, images=images)
        self.stemming = stemming
        self._tokenizer = tokeniser_choice(tokenizer)
        self._counted = Counted(
            self.captions,
            self.image_of_caption,
            tokeniser=stemmed(tokenizer, stemming),
            frequencies=document_frequencies,
            orders=self.ORDERS,
            share=share,
        )
        self._rows = self._counted.rows(self.rows)

    @staticmethod
    @abstractmethod
    def rows(counts: NgramCounts, weights: NgramWeights) -> SparseCaptions:
        """Captions as sparse rows whose product is the score against one reference."""

    @property
    def document_frequencies(self) -> DocumentFrequencies:
        """The document frequencies in use, to save or to hand to another source."""
        return self._counted.frequencies

    @property
    def frequencies_from(self) -> Frequencies:
        """Whose captions the document frequencies count."""
        return self._counted.frequencies_from

    def options(self) -> Mapping[str, Any]:
        """Leave-one-out, stemming and given document frequencies; the tokeniser shows in :meth:`hashed`."""
        stems = {} if self.stemming is None else {"stemming": self.stemming}
        return {"leave_one_out": self.leave_one_out, **stems, **self._counted.options()}

    def choices(self) -> Mapping[str, Any]:
        """The options, and the tokeniser unless it is the default."""
        return {**super().choices(), **self._tokenizer}

    def hashed(self) -> Iterator[bytes]:
        """Captions, ownership and tokens."""
        yield from super().hashed()
        yield from self._counted.vocabulary.hashed()


def _runs(images: range) -> Iterator[Positions]:
    for start in range(images.start, images.stop, _IMAGES):
        yield np.arange(start, min(start + _IMAGES, images.stop))


def joined(parts: Sequence[SparseCaptions]) -> SparseCaptions:
    """One sparse matrix from the rows of consecutive captions."""
    if len(parts) == 1:
        return parts[0]
    ends = np.cumsum([part.starts[-1] for part in parts]).tolist()
    starts = [part.starts[1:] + before for part, before in zip(parts, [0, *ends], strict=False)]
    return SparseCaptions(
        np.concatenate([np.zeros(1, np.int64), *starts]),
        np.concatenate([part.columns for part in parts]),
        np.concatenate([part.asked for part in parts]),
        np.concatenate([part.answers for part in parts]),
        np.concatenate([part.lengths for part in parts]),
        parts[0].penalty,
        max(part.width for part in parts),
    )


def sparse_rows(
    caption: NDArray[Any],
    columns: NDArray[Any],
    asked: NDArray[Any],
    answers: NDArray[Any],
    *,
    lengths: NDArray[Any],
    penalty: NDArray[Any],
) -> SparseCaptions:
    """Entries in any order as :class:`SparseCaptions`; entries whose answer weighs 0 are left out."""
    kept = np.flatnonzero(answers)
    order = kept[np.argsort(caption[kept], kind="stable")]
    starts = np.concatenate(([0], np.cumsum(np.bincount(caption[order], minlength=len(lengths)))))
    return SparseCaptions(
        starts.astype(np.int64),
        columns[order].astype(np.int32),
        asked[order].astype(np.float32),
        answers[order].astype(np.float32),
        lengths.astype(np.int32),
        penalty.astype(np.float32),
        int(columns.max(initial=-1)) + 1,
    )


def norms_of(caption: NDArray[Any], weights: NDArray[Any], captions: int) -> NDArray[np.float64]:
    """(captions,) length of each caption's vector of weights."""
    norms: NDArray[np.float64] = np.sqrt(np.bincount(caption, weights=weights**2, minlength=captions))
    return norms


def unit(caption: NDArray[Any], weights: NDArray[Any], captions: int) -> NDArray[np.float64]:
    """(entries,) weights scaled so that each caption's vector has length 1; a vector of zeros stays.

    >>> unit(np.array([0, 0, 2]), np.array([3.0, 4.0, 0.0]), 3)
    array([0.6, 0.8, 0. ])
    """
    norms = norms_of(caption, weights, captions)[caption]
    scaled: NDArray[np.float64] = np.divide(weights, norms, out=np.zeros_like(norms), where=norms > 0)
    return scaled
