"""Pictures with their vectors, captions and columns: of what queries are made, and with what they are compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rungwise.core import UserError
from rungwise.core.output import short_repr
from rungwise.data import ImageCaptions
from rungwise.index import FACTS, Index
from rungwise.metrics import EmbeddingSource, SimilaritySource
from rungwise.models import DualEncoder

_MOST_PICTURES = 5000
"""Largest number of pictures of an index that are read."""
_AT_ONCE = 256
_MOST_CAPTIONS = 10
"""Largest number of captions of one picture that are read."""

Values = frozenset[str] | None
"""Texts that a picture has in a column; None where it has none."""


@dataclass(frozen=True)
class TextedPictures:
    """Pictures with captions, columns, or both, as a dual encoder sees them.

    Attributes:
        model: The model that encoded them.
        ids: (pictures,) ids.
        images: (pictures, D) vectors.
        captions: (captions,) texts.
        owners: (captions,) picture of each caption.
        caption_vectors: (captions, D) vectors.
        columns: Texts of the owner's columns, by name, for each picture.
        name: Name of the collection, for people.
    """

    model: DualEncoder
    ids: tuple[str, ...]
    images: NDArray[np.float32]
    captions: tuple[str, ...]
    owners: NDArray[np.int64]
    caption_vectors: NDArray[np.float32]
    columns: Mapping[str, tuple[Values, ...]]
    name: str

    __repr__ = short_repr

    @classmethod
    def of_scores(cls, model: object, source: SimilaritySource, data: ImageCaptions) -> TextedPictures | None:
        """The pictures of a collection with its scores; None where these are not of vectors of a dual encoder."""
        if not isinstance(model, DualEncoder) or not isinstance(source, EmbeddingSource):
            return None
        columns = {
            name: tuple(_texts(value) for value in values)
            for name, values in data.columns.items()
            if name not in FACTS and len(values) == len(data)
        }
        return cls(
            model,
            data.image_ids,
            np.asarray(source.image, np.float32),
            data.captions,
            np.asarray(data.image_of_caption, np.int64),
            np.asarray(source.text, np.float32),
            _told(columns),
            data.name,
        )

    def scores(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(texts, pictures) similarities of texts."""
        vectors = np.asarray(self.model.encode_text(texts), np.float32)
        return np.asarray(self.model.similarity.array(self.images, vectors).T, np.float32)

    @classmethod
    def of_index(cls, index: Index, model: DualEncoder) -> TextedPictures:
        """The pictures of an index; of a large one, a sample of 5,000.

        Raises:
            UserError: If none of them has a caption or a text in a column of its owner's.
        """
        store, kept = index.picture_store, index.caption_store
        names = store.drawn(_MOST_PICTURES)
        ids: list[str] = []
        images: list[NDArray[np.float32]] = []
        captions: list[str] = []
        owners: list[int] = []
        columns: dict[str, dict[int, Values]] = {}
        for start in range(0, len(names), _AT_ONCE):
            rows = store.get(names[start : start + _AT_ONCE])
            items = index.found(list(rows))
            for one, row in rows.items():
                if one not in items:
                    continue
                texts = [text for text in items[one].captions if text.strip()][:_MOST_CAPTIONS]
                captions += texts
                owners += [len(ids)] * len(texts)
                for name, value in items[one].columns.items():
                    if name not in FACTS:
                        columns.setdefault(name, {})[len(ids)] = _texts(value)
                ids.append(one)
                images.append(row.vector)
        texts = list(dict.fromkeys(captions))
        vectors = {
            text: row.vector
            for start in range(0, len(texts), _AT_ONCE)
            for text, row in kept.get(texts[start : start + _AT_ONCE]).items()
        }
        there = [at for at, text in enumerate(captions) if text in vectors]
        told = _told({name: tuple(of.get(at) for at in range(len(ids))) for name, of in columns.items()})
        if not there and not told:
            raise UserError(
                f"{index.folder}: its pictures have no captions and no texts in columns to learn from; grade hits of"
                " searches on its page (rungwise serve), or give DATA with captions"
            )
        return cls(
            model,
            tuple(ids),
            np.stack(images),
            tuple(captions[at] for at in there),
            np.array([owners[at] for at in there], np.int64),
            np.array([vectors[captions[at]] for at in there], np.float32).reshape(-1, index.manifest.dimension),
            told,
            index.manifest.name or "the index",
        )


def _texts(value: object) -> Values:
    """Texts of a cell; None for an empty one, a number, or a truth value."""
    cells = (value,) if isinstance(value, str) else value if isinstance(value, tuple | list) else ()
    texts = frozenset(text.strip() for text in cells if isinstance(text, str) and text.strip())
    return texts or None


def _told(columns: Mapping[str, tuple[Values, ...]]) -> dict[str, tuple[Values, ...]]:
    """Columns that hold a text."""
    return {name: values for name, values in columns.items() if any(one is not None for one in values)}
