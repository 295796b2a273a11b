"""Similarity of a query to the captions of its hits, by the model's text vectors.

A picture whose caption says nearly the same as the query is relevant, whatever its own vector says. So this tells more
of where relevance ends than all that scores of pictures tell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from rungwise.index._index import Index
from rungwise.index._items import CAPTIONS
from rungwise.index.stores import Row, Vectors
from rungwise.similarity import unit_rows

LOOKED_AT = 50
"""Number of hits whose captions are compared; those of the others count as unknown."""
_CAPTIONS_OF_ONE = 10
"""Number of captions of one picture that are compared."""
_HELD = 8192
"""Number of pictures whose captions' vectors are held in memory."""


class CaptionSimilarity:
    """The captions of one version of an index, compared with queries."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._has_captions = index.caption_store.count() > 0
        self._of_picture: dict[str, Vectors] = {}

    def scores(self, query: NDArray[np.float32], rows: Mapping[str, Row]) -> NDArray[np.float64] | None:
        """(rows,) highest cosine of a (D,) query with the captions of each picture; NaN for a picture without any.

        None where the index has no captions.
        """
        if not self._has_captions:
            return None
        self._hold({one: row for one, row in rows.items() if one not in self._of_picture})
        scores = np.full(len(rows), np.nan)
        blocks = [self._of_picture.get(one) for one in rows]
        there = [at for at, block in enumerate(blocks) if block is not None and len(block)]
        if there:
            found = [block for block in blocks if block is not None and len(block)]
            cosines = np.concatenate(found) @ unit_rows(query[None])[0]
            starts = np.cumsum([0, *map(len, found[:-1])])
            scores[there] = np.maximum.reduceat(cosines, starts)
        return scores

    def _hold(self, rows: Mapping[str, Row]) -> None:
        if not rows:
            return
        if len(self._of_picture) + len(rows) > _HELD:
            self._of_picture.clear()
        texts = {one: tuple(islice(_captions(row), _CAPTIONS_OF_ONE)) for one, row in rows.items()}
        known = self._index.caption_store.get(list(dict.fromkeys(text for some in texts.values() for text in some)))
        nothing = np.empty((0, self._index.manifest.dimension), np.float32)
        for one, some in texts.items():
            vectors = [known[text].vector for text in some if text in known]
            self._of_picture[one] = unit_rows(np.stack(vectors)) if vectors else nothing


def _captions(row: Row) -> Sequence[str]:
    captions = row.record.get(CAPTIONS, ())
    return [text for text in captions if isinstance(text, str) and text.strip()]
