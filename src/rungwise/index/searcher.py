"""An index and the model that built it: searches by text and by picture."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rungwise.core.errors import UserError
from rungwise.data.packed import Picture
from rungwise.index.encoding import one_line
from rungwise.index.hits import CaptionHit, Hit, hits_of
from rungwise.index.index import Index
from rungwise.index.store import checked_queries

if TYPE_CHECKING:
    from rungwise.models.contracts import DualEncoder


class Searcher:
    """Searches of an index with texts and pictures.

    The model's fingerprint, for which all its weights are read, is compared with that of the index when the searcher
    is made and not again: make a new searcher for a model whose weights have changed since.

    Args:
        index: What is searched.
        model: The model that built it.

    Attributes:
        index: As given.
        model: As given.

    Raises:
        UserError: If another model built the index.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from rungwise.data import ImageCaptions
    >>> from rungwise.data.features import FeatureRows
    >>> from rungwise.models import DualEncoder, EncodedImages
    >>> from rungwise.similarity import Cosine
    >>> class Letters(DualEncoder):  # images are given as how many a and b they show, texts are counted
    ...     dimension, fingerprint, similarity = 2, "letters", Cosine()
    ...     def encode_image(self, pictures, *, progress=None, cache=None):
    ...         rows = pictures[:] / np.linalg.norm(pictures[:], axis=1, keepdims=True)
    ...         return EncodedImages(rows.astype(np.float32), np.arange(len(rows)))
    ...     def encode_text(self, texts):
    ...         counts = np.array([[text.count("a"), text.count("b")] for text in texts], np.float32)
    ...         return counts / np.linalg.norm(counts, axis=1, keepdims=True)
    >>> data = ImageCaptions(("x", "y"), ("aa",), np.array([0]), features=FeatureRows(np.array([[3.0, 0], [1, 1]])))
    >>> index = Index.build(data, Letters(), Path(tempfile.mkdtemp()) / "index")
    >>> [hit.id for hit in Searcher(index, Letters()).search_text("abab")]
    ['y', 'x']
    """

    def __init__(self, index: Index, model: DualEncoder) -> None:
        index.check(model)
        self.index = index
        self.model = model

    def search_text(self, text: str, k: int = 10) -> list[Hit]:
        """The k pictures most similar to a text, by the model's own similarity, best first.

        Raises:
            UserError: If the text is blank, or k is less than 1.
        """
        if not text.strip():
            raise UserError("the query is empty; write a few words about the picture")
        query = self._queries(self.model.encode_text([text]), k)
        return hits_of(self.index.picture_store.search(query, k))[0]

    def search_image(self, picture: Picture | bytes, k: int = 10) -> list[Hit]:
        """The k pictures most similar to any picture, best first.

        Raises:
            UserError: If the picture cannot be read, or k is less than 1.
        """
        return self.index.search(self.encode_picture(picture), k)[0]

    def captions_for(self, picture: Picture | bytes, k: int = 10) -> list[CaptionHit]:
        """The k captions of the collection that fit a picture best; none when the collection has no captions.

        Raises:
            UserError: If the picture cannot be read, or k is less than 1.
        """
        return self.captions_near(self.encode_picture(picture), k)

    def captions_near(self, vector: ArrayLike, k: int = 10) -> list[CaptionHit]:
        """As :meth:`captions_for`, for a picture that is encoded already, (D,) or (1, D)."""
        found = self.index.caption_store.search(self._queries(vector, k), k)
        bearers = self.index.ids_with_captions(found.ids[0])
        return [
            CaptionHit(text, score, bearers[text])
            for text, score in zip(found.ids[0], found.scores[0].tolist(), strict=True)
            if text in bearers  # a process that died may have left one that no picture has
        ]

    def encode_picture(self, picture: Picture | bytes) -> NDArray[np.float32]:
        """(1, D), the vector of a picture that need not be in the index.

        Raises:
            UserError: If the picture cannot be read.
        """
        return self.prepare_picture(picture)()

    def prepare_picture(self, picture: Picture | bytes) -> Callable[[], NDArray[np.float32]]:
        """Read a picture now, in any thread; the answer encodes it, as :meth:`encode_picture` does.

        Raises:
            UserError: If the picture cannot be read; some models say so when the answer is called.
        """
        encode = self.model.prepare_image(picture)

        def vector() -> NDArray[np.float32]:
            encoded = encode()
            if not len(encoded.kept):
                raise UserError(one_line(encoded.issues[0]))
            return self._queries(encoded.vectors, 1)

        return vector

    def on(self, index: Index) -> Searcher:
        """The same model on another index that it built; no weights are read.

        Raises:
            UserError: If another model built that index.
        """
        ours, theirs = self.index.manifest, index.manifest
        if ours.dimension != theirs.dimension or not ours.models & theirs.models:
            raise UserError(
                f"built by model {theirs.model_fingerprint[:12]} (dimension {theirs.dimension}), not by"
                f" {ours.model_fingerprint[:12]} (dimension {ours.dimension})"
            )
        other = copy(self)
        other.index = index
        return other

    def _queries(self, vectors: ArrayLike, k: int) -> NDArray[np.float32]:
        return checked_queries(np.atleast_2d(np.asarray(vectors, np.float32)), self.index.manifest.dimension, k)
