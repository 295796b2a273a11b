"""Captions of a collection as queries: what a search would know of each besides its scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rungwise.calibration import UNRELATED, Calibration, Known
from rungwise.core import UserError
from rungwise.data import ImageCaptions
from rungwise.evaluation.inputs import similarity_source
from rungwise.index import CAPTIONS, Index
from rungwise.index.cutoff import LOOKED_AT, known_of_texts
from rungwise.metrics import Direction, EmbeddingSource, JudgedQueries, Scores, SimilaritySource
from rungwise.models import DualEncoder
from rungwise.similarity import unit_rows

_MOST_PICTURES = 5000
"""Largest number of pictures of an index that are read, with all of their captions."""
_AT_ONCE = 256
"""Number of captions compared with all others at a time."""


@dataclass(frozen=True)
class CaptionQueries:
    """The captions of a collection as queries of a dual encoder.

    A calibration learns from them (:meth:`rungwise.calibration.Calibration.fit`), and is judged by them.

    Attributes:
        model: The model that encoded the collection.
        source: Vectors of its images and captions, with their similarity.
        data: The images with their captions, in the order of the vectors.
    """

    model: DualEncoder
    source: EmbeddingSource
    data: ImageCaptions

    @classmethod
    def of(cls, model: object, source: SimilaritySource, data: ImageCaptions) -> CaptionQueries | None:
        """The captions of some scores as queries; None where the scores are not those of vectors of a dual encoder."""
        if not isinstance(model, DualEncoder) or not isinstance(source, EmbeddingSource):
            return None
        return cls(model, source, data)

    @classmethod
    def of_index(cls, index: Index, model: DualEncoder) -> CaptionQueries:
        """The captions of the pictures of an index; of a large index, those of a sample of 5,000 pictures.

        Raises:
            UserError: If the pictures have no captions.
        """
        store, kept = index.picture_store, index.caption_store
        names = store.drawn(_MOST_PICTURES)
        ids: list[str] = []
        images: list[NDArray[np.float32]] = []
        captions: list[str] = []
        owners: list[int] = []
        for start in range(0, len(names), _AT_ONCE):
            for name, row in store.get(names[start : start + _AT_ONCE]).items():
                texts = [text for text in row.record.get(CAPTIONS, ()) if isinstance(text, str) and text.strip()]
                if texts:
                    captions += texts
                    owners += [len(ids)] * len(texts)
                    ids.append(name)
                    images.append(row.vector)
        texts = list(dict.fromkeys(captions))
        rows = {
            text: row.vector
            for start in range(0, len(texts), _AT_ONCE)
            for text, row in kept.get(texts[start : start + _AT_ONCE]).items()
        }
        there = [at for at, text in enumerate(captions) if text in rows]
        data = ImageCaptions(
            tuple(ids),
            tuple(captions[at] for at in there),
            np.array([owners[at] for at in there], dtype=np.int64),
            name=index.manifest.name or "the index",
        )
        if not data.captions:
            raise UserError(f"{index.folder}: its pictures have no captions to learn from; give DATA with captions")
        vectors = np.stack([rows[text] for text in data.captions])
        function = None if index.similarity.product else index.similarity.array
        source = similarity_source(
            image_embeddings=np.stack(images),
            text_embeddings=vectors,
            image_of_caption=data.image_of_caption,
            similarity_function=function,
        )
        assert isinstance(source, EmbeddingSource)
        return cls(model, source, data)

    def unrelated(self, *, likeness: bool = False) -> tuple[NDArray[np.float32], list[Known]]:
        """(texts, images) scores of texts that fit no picture, and what is known of each.

        Args:
            likeness: Whether to add the similarity of each text with the captions of every picture.
        """
        vectors = np.asarray(self.model.encode_text(UNRELATED), np.float32)
        scores = self.model.similarity.array(np.asarray(self.source.image, np.float32), vectors).T
        return scores, _known(self.model, UNRELATED, vectors, self._alike(vectors) if likeness else None)

    def known(self, captions: NDArray[np.int64], *, likeness: bool = False) -> list[Known]:
        """What a search knows of these captions besides their scores.

        Args:
            captions: Positions of the captions.
            likeness: Whether to add the similarity of each with the captions of every picture, except itself: what a
                search knows in an index with captions.
        """
        vectors = self.source.text[captions]
        texts = [self.data.captions[caption] for caption in captions.tolist()]
        return _known(self.model, texts, vectors, self._alike(vectors, captions) if likeness else None)

    def _alike(self, vectors: NDArray[Any], captions: NDArray[np.int64] | None = None) -> NDArray[np.float32]:
        return _alike(self.source.text, self.data.image_of_caption, self.source.shape[0], vectors, captions)


@dataclass(frozen=True, eq=False)
class CaptionEnds:
    """A calibration that judges captions as a search does in an index with the other captions of the collection.

    How near a query is to the captions of its hits is worked out when it is judged: of all queries at once it would
    fill captions times images. Images as queries are judged by their scores alone.

    Attributes:
        calibration: The calibration that judges.
        known: (all captions,) what else is known of each.
        unit: (all captions, D) their vectors, of length 1.
        owners: (all captions,) image of each.
        images: Positions of the images that are ranked.
        captions: Positions of the captions that are ranked. Hits have the others too.
    """

    calibration: Calibration
    known: Sequence[Known]
    unit: NDArray[np.float32]
    owners: NDArray[np.int64]
    images: NDArray[np.int64]
    captions: NDArray[np.int64]

    @classmethod
    def of(cls, calibration: Calibration, queries: CaptionQueries) -> CaptionEnds:
        """The calibration for a whole collection."""
        images, captions = map(np.arange, queries.source.shape)
        owners = queries.data.image_of_caption
        return cls(calibration, queries.known(captions), unit_rows(queries.source.text), owners, images, captions)

    def of_part(self, images: NDArray[np.int64], captions: NDArray[np.int64]) -> CaptionEnds:
        """The method for a part of the collection that is ranked by itself, by positions in the collection."""
        return replace(self, images=images, captions=captions)

    def judge(self, scores: Scores, direction: Direction, queries: NDArray[np.int64]) -> JudgedQueries:
        """Degrees and cuts of some queries of one direction; see :meth:`rungwise.calibration.Calibration.judge`."""
        known = None
        if direction == "t2i":
            asked = zip(self.captions[queries].tolist(), scores, strict=True)
            known = [replace(self.known[one], caption_scores=self._alike(one, of)) for one, of in asked]
        return self.calibration.judge(scores, direction, np.arange(len(queries)), known)

    def __str__(self) -> str:
        return f"{self.calibration}; of captions, with the other captions of their hits"

    def _alike(self, caption: int, scores: Scores) -> NDArray[np.float32]:
        """(images,) highest cosine of one caption with the others of each hit; NaN without any, and after the hits."""
        hits = np.arange(len(scores))
        if len(scores) > LOOKED_AT:
            hits = np.flatnonzero(scores >= np.partition(scores, -LOOKED_AT)[-LOOKED_AT])
        order, starts = self._by_image
        captions_of = [order[starts[image] : starts[image + 1]] for image in self.images[hits].tolist()]
        others, columns = np.concatenate(captions_of), np.repeat(hits, [*map(len, captions_of)])
        others, columns = others[others != caption], columns[others != caption]
        found = np.full(len(scores), np.nan, np.float32)
        # One query at a time: the rounding of a product depends on its shape, and no number may depend on blocks.
        np.fmax.at(found, columns, self.unit[others] @ self.unit[caption])
        return found

    @cached_property
    def _by_image(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Captions in the order of their images, and the place of the first of each image."""
        order = np.argsort(self.owners, kind="stable")
        return order, np.searchsorted(self.owners[order], np.arange(self.images.max(initial=0) + 2))


def _known(
    model: DualEncoder, texts: Sequence[str], vectors: NDArray[Any], alike: NDArray[np.float32] | None
) -> list[Known]:
    known = []
    for at, (text, vector) in enumerate(zip(texts, vectors, strict=True)):
        one = known_of_texts([text], vector, model) or Known(vector=vector)
        known.append(one if alike is None else replace(one, caption_scores=alike[at]))
    return known


def _alike(
    vectors: NDArray[Any],
    owners: NDArray[np.int64],
    images: int,
    queries: NDArray[Any],
    captions: NDArray[np.int64] | None = None,
) -> NDArray[np.float32]:
    """(queries, images) highest cosine of each query with the captions of each picture; NaN without captions.

    Args:
        vectors: (captions, D) vectors of all captions.
        owners: (captions,) picture of each caption.
        images: Number of pictures.
        queries: (queries, D) vectors of the queries.
        captions: (queries,) positions of the queries among the captions, which are left out.
    """
    unit, asking = unit_rows(vectors), unit_rows(queries)
    order = np.argsort(owners, kind="stable")
    have, starts = np.unique(owners[order], return_index=True)
    found = np.full((len(queries), images), np.nan, np.float32)
    for start in range(0, len(queries), _AT_ONCE):
        some = asking[start : start + _AT_ONCE]
        cosines = some @ unit.T
        if captions is not None:
            cosines[np.arange(len(some)), captions[start : start + _AT_ONCE]] = -np.inf
        best = np.maximum.reduceat(cosines[:, order], starts, axis=1)
        found[start : start + len(some), have] = np.where(np.isneginf(best), np.nan, best)
    return found
