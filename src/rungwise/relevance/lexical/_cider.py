"""CIDEr and CIDEr-D (Vedantam, Zitnick, Parikh 2015) of every caption with every image's captions.

With g_k(s) the vector of tf-idf weights of the n-grams of length n in s (tf the raw count, idf the logarithm of the
number of images over the number of images whose captions have the n-gram)::

    CIDEr(G_i, c)   = 10/4 * sum_n mean over r in G_i of  g_n(c).g_n(r) / (|g_n(c)| |g_n(r)|)
    CIDEr-D(G_i, c) = 10/4 * sum_n mean over r in G_i of  min(g_n(c), g_n(r)).g_n(r) / (|g_n(c)| |g_n(r)|)
                                                          * exp(-(length_c - length_r)^2 / (2 * 6^2))

The paper has words mapped to their root forms before their n-grams are counted; ``stemming`` does it. The class named
Cider of the captioning tools computes CIDEr-D and does not stem, which is the default here. A clipped product is a
plain one over n-grams that are told apart by their first, second, ... occurrence::

    min(a, b) b = sum over t of [a >= t] [b >= t] b
"""

from __future__ import annotations

import numpy as np

from rungwise.relevance.lexical._base import ConsensusSource, NgramWeights, norms_of, sparse_rows, unit
from rungwise.relevance.lexical._inverted_index import SparseCaptions
from rungwise.relevance.lexical._ngrams import NgramCounts

SCALE = 10.0
ORDERS = 4
SIGMA = 6.0


class CIDEr(ConsensusSource):
    """CIDEr by the module's formula; ``stemming="english"`` gives the paper's. 0..10.

    A caption stays among the references of its own image unless ``leave_one_out``, so that its own degree is high.

    Args:
        captions: (captions,) texts.
        image_of_caption: (captions,) the position of each caption's image.
        tokenizer: Text to tokens; :func:`~rungwise.language.tokenisers.ptb` as the captioning tools.
        stemming: Language whose stems stand for the tokens, such as ``"english"``; None keeps the tokens. It needs the
            extra ``rungwise[languages]``.
        document_frequencies: Frequencies of another corpus, so that scores do not depend on these captions; None counts
            their images.
        leave_one_out: A caption is no reference for itself; without another reference its own image scores 0.
        images: Number of images, where the last ones have no caption.
        share: Executor that counts the captions' n-grams and weighs them, some captions at a time.

    >>> CIDEr(["a dog runs", "a dog sits", "the cat sleeps"], [0, 0, 1]).dense().round(2)
    array([[5.21, 5.21, 0.  ],
           [0.  , 0.  , 7.5 ]], dtype=float32)
    >>> CIDEr(["a dog runs", "dogs running", "the cat sleeps"], [0, 1, 2], stemming="english").dense().round(2)[0]
    array([7.5 , 2.02, 0.  ], dtype=float32)
    """

    ORDERS = ORDERS

    @staticmethod
    def rows(counts: NgramCounts, weights: NgramWeights) -> SparseCaptions:
        """Unit tf-idf vectors on both sides."""
        captions = len(counts.lengths)
        caption, columns, values = [], [], []
        first = 0
        for order, idf in enumerate(weights.idf):
            of, ngram = counts.caption[order], counts.ngram[order]
            caption.append(of)
            columns.append(first + ngram)
            values.append(unit(of, counts.count[order] * idf[ngram], captions))
            first += len(idf)
        weight = np.concatenate(values)
        return sparse_rows(
            np.concatenate(caption),
            np.concatenate(columns),
            weight * (SCALE / ORDERS),
            weight,
            lengths=np.zeros(captions),
            penalty=np.ones(1),
        )


class CIDErD(ConsensusSource):
    """CIDEr-D: clipped counts and a penalty on length; pycocoevalcap's Cider, given the same tokens. 0..10.

    "Length" is the number of word pairs, as in the captioning tools: it differs from the number of words by one, the
    empty caption aside, so that differences are the same. Arguments are those of :class:`CIDEr`.

    >>> CIDErD(["a dog runs", "a dog sits", "the cat sleeps"], [0, 0, 1]).dense().round(2)
    array([[5.21, 5.21, 0.  ],
           [0.  , 0.  , 7.5 ]], dtype=float32)
    """

    ORDERS = ORDERS

    @staticmethod
    def rows(counts: NgramCounts, weights: NgramWeights) -> SparseCaptions:
        """One column per n-gram and occurrence; asked: 1 / norm, answers: count * idf^2 / norm."""
        captions = len(counts.lengths)
        caption, columns, asked, answers = [], [], [], []
        first = 0
        for order, (idf, most) in enumerate(zip(weights.idf, weights.most, strict=True)):
            of, ngram, count = (column[order] for column in (counts.caption, counts.ngram, counts.count))
            norms = norms_of(of, count * idf[ngram], captions)[of]
            inverse = np.divide(1, norms, out=np.zeros_like(norms), where=norms > 0)
            for level in range(1, int(most.max(initial=0)) + 1):
                here, known = np.flatnonzero(count >= level), np.flatnonzero(most >= level)
                caption.append(of[here])
                columns.append(first + np.searchsorted(known, ngram[here]))
                asked.append(inverse[here] * (SCALE / ORDERS))
                answers.append(count[here] * idf[ngram[here]] ** 2 * inverse[here])
                first += len(known)
        differences = np.arange(max(weights.longest - 1, 0) + 1)
        return sparse_rows(
            np.concatenate([np.empty(0, np.int64), *caption]),
            np.concatenate([np.empty(0, np.int64), *columns]),
            np.concatenate([np.empty(0), *asked]),
            np.concatenate([np.empty(0), *answers]),
            lengths=np.maximum(counts.lengths - 1, 0),
            penalty=np.exp(-(differences**2) / (2 * SIGMA**2)),
        )
