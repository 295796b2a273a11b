"""Cosine of tf-idf weighted words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rungwise.core.compute import Share, in_turn
from rungwise.language import stemmed
from rungwise.language.tokenisers import Tokeniser, ptb
from rungwise.relevance._base import Block, Direction, Frequencies
from rungwise.relevance._caption_pairs import caption_positions
from rungwise.relevance._captions import CaptionPairSource, References
from rungwise.relevance.lexical._base import Counted, NgramWeights, sparse_rows, tokeniser_choice, unit
from rungwise.relevance.lexical._inverted_index import InvertedIndex, SparseCaptions
from rungwise.relevance.lexical._ngrams import DocumentFrequencies, NgramCounts


class PairRows(CaptionPairSource):
    """Base of the sources whose score of two captions is a product of sparse rows: set ``_rows``."""

    _rows: SparseCaptions

    def grain(self, direction: Direction) -> int:
        """1: a pair has the same bits in every block."""
        return 1

    @property
    def weights(self) -> SparseCaptions:
        """The captions as sparse rows, all that degrees are computed from."""
        return self._rows

    def pair_block(self, first: ArrayLike, second: ArrayLike) -> Block:
        """(len(first), len(second)) float32 cosine of captions."""
        references, captions = caption_positions(first, second, self.shape[1])
        index = InvertedIndex(self._rows, references, np.ones(len(references), np.int64))
        return np.ascontiguousarray(index.scores(captions).T)


class TfIdf(PairRows):
    """Cosine of two captions' words, each weighted by tf * log(images / images that have it). 0..1.

    It sees words in common, rare ones above all, and neither order nor synonyms.

    Args:
        captions: (captions,) texts.
        image_of_caption: (captions,) the position of each caption's image.
        tokenizer: Text to tokens.
        stemming: Language whose stems stand for the tokens; None keeps the tokens.
        document_frequencies: Frequencies counted in another corpus; None counts the images of these captions.
        orders: Length of the longest n-gram; 1 takes single words.
        reference: Which captions stand for an image, as in :class:`~rungwise.relevance.CaptionPairSource`.
        leave_one_out: A caption is no reference for itself.
        images: Number of images, where the last ones have no caption.
        share: Executor that counts the captions' n-grams and weighs them, some captions at a time.

    >>> TfIdf(["a dog runs", "a dog sits", "the cat sleeps"], [0, 0, 1], reference="mean").dense().round(2)
    array([[0.83, 0.83, 0.  ],
           [0.  , 0.  , 1.  ]], dtype=float32)
    """

    def __init__(
        self,
        captions: Sequence[str],
        image_of_caption: Sequence[int] | ArrayLike,
        *,
        tokenizer: Tokeniser = ptb,
        stemming: str | None = None,
        document_frequencies: DocumentFrequencies | None = None,
        orders: int = 1,
        reference: References = "max",
        leave_one_out: bool = False,
        images: int | None = None,
        share: Share = in_turn,
    ) -> None:
        super().__init__(captions, image_of_caption, reference=reference, leave_one_out=leave_one_out, images=images)
        self.orders = orders
        self.stemming = stemming
        self._tokenizer = tokeniser_choice(tokenizer)
        self._counted = Counted(
            self.captions,
            self.image_of_caption,
            tokeniser=stemmed(tokenizer, stemming),
            frequencies=document_frequencies,
            orders=orders,
            share=share,
        )
        self._rows = self._counted.rows(self.rows)

    @staticmethod
    def rows(counts: NgramCounts, weights: NgramWeights) -> SparseCaptions:
        """Unit tf-idf vectors of n-grams of all lengths together."""
        captions, sizes = len(counts.lengths), [len(idf) for idf in weights.idf]
        caption = np.concatenate(counts.caption)
        columns = np.concatenate([ngram + sum(sizes[:order]) for order, ngram in enumerate(counts.ngram)])
        values = unit(caption, np.concatenate(counts.count) * np.concatenate(weights.idf)[columns], captions)
        return sparse_rows(caption, columns, values, values, lengths=np.zeros(captions), penalty=np.ones(1))

    @property
    def frequencies_from(self) -> Frequencies:
        """Whose captions the document frequencies count."""
        return self._counted.frequencies_from

    def options(self) -> Mapping[str, Any]:
        """References, n-grams, stemming and given document frequencies; the tokeniser shows in :meth:`hashed`."""
        stems = {} if self.stemming is None else {"stemming": self.stemming}
        return {**super().options(), "orders": self.orders, **stems, **self._counted.options()}

    def choices(self) -> Mapping[str, Any]:
        """The options, and the tokeniser unless it is the default."""
        return {**super().choices(), **self._tokenizer}

    def hashed(self) -> Iterator[bytes]:
        """Captions, ownership and tokens."""
        yield from super().hashed()
        yield from self._counted.vocabulary.hashed()
