"""What the captions and columns of hits say of a query: their likeness by the model, and the words that they hold.

A picture whose caption says nearly the same as the query is relevant, whatever its own vector says. So this tells more
of where relevance ends than all that scores of pictures tell.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rungwise.calibration import Known
from rungwise.core.text import UNSPACED
from rungwise.index._index import Index
from rungwise.index._items import CAPTIONS, FACTS
from rungwise.index.query import Query, Rarity
from rungwise.index.stores import WORDS, Row, Vectors, words_of
from rungwise.similarity import unit_rows

if TYPE_CHECKING:
    from rungwise.models import DualEncoder

_CAPTIONS_OF_ONE = 10
"""Number of captions of one picture that are compared."""
_HELD = 8192
"""Number of pictures whose captions' vectors are held in memory."""
_ITEMS_LOOKED_AT = 200
"""Number of pictures among whose columns a text is looked for."""
_CHARACTERS_OF_WORD = 2
"""Number of characters that count as a word in scripts without blanks."""
_UNSPACED = re.compile(f"[{UNSPACED}]")


def known_of(query: Query, vector: NDArray[np.float32], model: DualEncoder) -> Known | None:
    """Knowledge of a query beside its scores: its (D,) vector, its length, and the share of words unknown to the model.

    None for a query without words.
    """
    return known_of_texts(query.texts, vector, model)


def known_of_texts(texts: Sequence[str], vector: NDArray[np.float32], model: DualEncoder) -> Known | None:
    """Knowledge of the texts of one query, as by :func:`known_of`; they may be longer than a query may be."""
    words = {word for text in texts for word in words_of(text)}
    if not words:
        return None
    unknown = {word for text in texts for word in model.unknown_words(text)}
    return Known(vector=vector, unknown_share=min(1.0, len(unknown) / len(words)), words=sum(map(length_of, texts)))


def length_of(text: str) -> int:
    """Number of words of a text; where a script has no blanks, two characters count as a word.

    >>> length_of("a dog in the snow"), length_of("雪の中の犬")
    (5, 3)
    """
    return sum(-(-len(word) // _CHARACTERS_OF_WORD) if _UNSPACED.search(word) else 1 for word in words_of(text))


class HitTexts:
    """The captions and columns of the pictures of one version of an index, compared with queries.

    Args:
        index: The index.
        rarity: Gives the rarity of words in its texts, which is slow to find out.
    """

    def __init__(self, index: Index, rarity: Callable[[], Rarity]) -> None:
        self._index = index
        self._rarity = rarity
        self._has_captions = index.caption_store.count() > 0
        self._of_picture: dict[str, Vectors] = {}

    @cached_property
    def are_there(self) -> bool:
        """Whether pictures have captions, or texts in columns of their owner's."""
        return self._has_captions or any(
            isinstance(value, str | tuple)
            for item in islice(self._index.items(), _ITEMS_LOOKED_AT)
            for name, value in item.columns.items()
            if name not in FACTS
        )

    def of(
        self, known: Known, words: str, vector: NDArray[np.float32], rows: Mapping[str, Row], hits: Sequence[str]
    ) -> Known:
        """What is known of a query, and what the texts of its hits say of it.

        Args:
            known: What is known of the query alone.
            words: Words of the query.
            vector: (D,) vector of the query.
            rows: The hits whose texts are read.
            hits: Ids of all hits, in order.
        """
        texts = [str(row.record.get(WORDS, "")) for row in rows.values()]
        if not any(texts):
            return known
        rarity, place = self._rarity(), {one: at for at, one in enumerate(hits)}
        read = np.array([place[one] for one in rows], np.int64)
        stated, scores, counts = np.full(len(hits), np.nan), None, np.zeros(len(hits), np.int64)
        has_text = np.array([bool(text) for text in texts])
        stated[read[has_text]] = np.array(rarity.shares(words, texts), np.float64)[has_text]
        counts[read] = [len(_captions(row)) for row in rows.values()]
        if (found := self.scores(vector, rows)) is not None:
            scores = np.full(len(hits), np.nan)
            scores[read] = found
        return replace(
            known,
            caption_scores=scores,
            stated=stated,
            counts=counts,
            bearers=rarity.bearers(words),
            texts=rarity.texts,
        )

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
        place = {text: at for at, text in enumerate(known)}
        units = unit_rows(np.array([row.vector for row in known.values()], np.float32).reshape(len(known), -1))
        for one, some in texts.items():
            self._of_picture[one] = units[[place[text] for text in some if text in place]]


def _captions(row: Row) -> Sequence[str]:
    captions = row.record.get(CAPTIONS, ())
    return [text for text in captions if isinstance(text, str) and text.strip()]
