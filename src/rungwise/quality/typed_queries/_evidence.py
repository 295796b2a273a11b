"""What the captions and columns of a collection say of queries: what a search in an index of it would know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rungwise.calibration import Known
from rungwise.index.cutoff import known_of_texts
from rungwise.index.query import Rarity
from rungwise.index.stores import word_set, words_of
from rungwise.quality.typed_queries._texted_pictures import TextedPictures
from rungwise.similarity import unit_rows

_AT_ONCE = 128


class TextEvidence:
    """The captions of each picture that a search knows, and its columns, compared with queries.

    Args:
        collection: The pictures.
        share: Share of the captions of each picture, from 0 for one of them to 1 for all but one, drawn at random; all
            of them if None.
        seed: Seed of the draw.
    """

    def __init__(self, collection: TextedPictures, share: float | None = None, seed: int = 0) -> None:
        from scipy import sparse

        pictures, owners = len(collection.ids), collection.owners
        rng = np.random.default_rng(seed)
        number = np.bincount(owners, minlength=pictures)
        wanted = number if share is None else 1 + (share * np.maximum(0, number - 2)).astype(np.int64)
        order = np.lexsort((rng.random(len(owners)), owners))
        rank = np.arange(len(owners)) - np.concatenate([[0], np.cumsum(number)])[owners[order]]
        self._held = np.sort(order[rank < wanted[owners[order]]])
        self._owners = owners[self._held]
        self._collection = collection
        self._counts = np.bincount(self._owners, minlength=pictures)
        self._units = unit_rows(collection.caption_vectors[self._held]) if len(self._held) else None
        columns = [
            " ".join(sorted(text for values in collection.columns.values() for text in values[at] or ()))
            for at in range(pictures)
        ]
        self._texts = list(columns)
        for at, owner in zip(self._held.tolist(), self._owners.tolist(), strict=True):
            self._texts[owner] += "\n" + collection.captions[at]
        self._rarity = Rarity(text for text in self._texts if text)
        # Of a large collection, it looks at the first texts alone.
        self._counted = np.zeros(pictures, bool)
        self._counted[[at for at, text in enumerate(self._texts) if text][: self._rarity.texts]] = True
        words: dict[str, int] = {}
        rows, places = [], []
        for at, text in enumerate(self._texts):
            for word in set(words_of(text)):
                rows.append(at)
                places.append(words.setdefault(word, len(words)))
        self._words = words
        self._has = sparse.csr_matrix(
            (np.ones(len(rows), np.float32), (rows, places)), shape=(pictures, max(1, len(words)))
        )
        self._silent = np.array([not text for text in self._texts])

    def known(self, texts: Sequence[str], vectors: NDArray[np.float32], own: NDArray[np.int64]) -> list[Known]:
        """What a search knows of each text.

        ``own`` (texts,) is the caption that each is, which is left out, or -1. Where its picture has no other caption,
        only the query itself is known.
        """
        model, found = self._collection.model, []
        stated = self._stated(texts)
        for start in range(0, len(texts), _AT_ONCE):
            here = slice(start, start + _AT_ONCE)
            alike = self._alike(vectors[here], own[here])
            for at, (text, vector) in enumerate(zip(texts[here], vectors[here], strict=True), start):
                one = known_of_texts([text], vector, model) or Known(vector=vector, words=1)
                if own[at] >= 0 and not self._has_others(int(own[at])):
                    # Its own picture alone would have no texts: a sign that no search gives.
                    found.append(one)
                    continue
                share, bearers = stated[at], self._rarity.bearers(text)
                if own[at] >= 0:
                    share, fewer = self._without(share, text, int(own[at]))
                    bearers -= fewer
                found.append(
                    replace(
                        one,
                        caption_scores=None if alike is None else alike[at - start],
                        stated=share,
                        counts=self._counts,
                        bearers=bearers,
                        texts=self._rarity.texts,
                    )
                )
        return found

    def _has_others(self, caption: int) -> bool:
        """Whether the picture of a caption has another one that is known."""
        held = self._held[self._owners == self._collection.owners[caption]]
        return bool((held != caption).any())

    def _stated(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(texts, pictures) share of the words of each text, weighted by rarity, that each picture's texts hold."""
        from scipy import sparse

        rows, places, weights = [], [], []
        for at, text in enumerate(texts):
            shares = self._rarity.weights(text)
            for word, weight in shares.items():
                if word in self._words:
                    rows.append(at)
                    places.append(self._words[word])
                    weights.append(weight)
        asked = sparse.csr_matrix((weights, (rows, places)), shape=(len(texts), self._has.shape[1]), dtype=np.float32)
        found: Any = (asked @ self._has.T).toarray()
        found[:, self._silent] = np.nan
        return np.asarray(np.minimum(found, 1.0), np.float32)

    def _without(self, shares: NDArray[np.float32], text: str, caption: int) -> tuple[NDArray[np.float32], bool]:
        """The shares, of the picture whose caption this is by its other texts alone.

        Also whether the picture is no bearer of all words without the caption, and one with it.
        """
        owner = int(self._collection.owners[caption])
        others = [self._collection.captions[at] for at in self._held[self._owners == owner].tolist() if at != caption]
        values = [one for of in self._collection.columns.values() for one in sorted(of[owner] or ())]
        own = shares.copy()
        left = "\n".join([*others, *values])
        own[owner] = self._rarity.shares(text, [left])[0] if left else np.nan
        words = word_set(text)
        bears = bool(self._counted[owner]) and bool(words) and words <= word_set(self._texts[owner])
        return own, bears and not words <= word_set(left)

    def _alike(self, vectors: NDArray[np.float32], own: NDArray[np.int64]) -> NDArray[np.float32] | None:
        """(queries, pictures) highest cosine with the held captions of each picture; NaN without any."""
        if self._units is None:
            return None
        cosines = unit_rows(vectors) @ self._units.T
        mine = np.searchsorted(self._held, own)
        has = np.flatnonzero((own >= 0) & (mine < len(self._held)))
        has = has[self._held[mine[has]] == own[has]]
        cosines[has, mine[has]] = -np.inf
        order = np.argsort(self._owners, kind="stable")
        have, starts = np.unique(self._owners[order], return_index=True)
        best = np.maximum.reduceat(cosines[:, order], starts, axis=1)
        found = np.full((len(vectors), len(self._collection.ids)), np.nan, np.float32)
        found[:, have] = np.where(np.isneginf(best), np.nan, best)
        return found
