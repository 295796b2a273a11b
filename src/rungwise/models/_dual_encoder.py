"""Models of an encoder of pictures and one of texts, a head on each, and a similarity.

The heads are trained (:mod:`rungwise.models.joint._joint_embedding`) or fitted (:mod:`rungwise.models.subspace`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from rungwise.data.files import FeatureRows, Picture
from rungwise.data.pictures import prepared_picture
from rungwise.encoders.images import encoded, of_one_size
from rungwise.encoders.vocabulary import Tokens
from rungwise.models._contracts import EncodedImages, Pictures, Progress, VectorScores
from rungwise.models._encoder_pair import (
    EncoderBatch,
    EncoderPair,
    encoder_sides,
    image_features,
    inference,
    picture_side,
    text_features,
    text_inputs,
    texts_are_rows,
)
from rungwise.models._training_pairs import Autocast, Compilable, ImageInputs, Pairs, TrainableEncoder
from rungwise.similarity import Similarity

_IMAGES_AT_ONCE, _TEXTS_AT_ONCE = 256, 1024


class TwoTower(EncoderPair, TrainableEncoder):
    """Two encoders, a head on each, and a similarity.

    A family sets the parts. Its configuration has ``dimension`` and ``similarity`` besides.

    Attributes:
        exportable: Whether a text's vector depends on its tokens alone, so that a graph can compute it.
        image_projection: The head of the image side.
        text_projection: The head of the text side.
    """

    exportable: ClassVar[bool] = True

    image_projection: nn.Module
    text_projection: nn.Module

    @property
    def dimension(self) -> int:
        """Width of the joint space."""
        return int(self.config.dimension)

    @property
    def similarity(self) -> Similarity:
        """How vectors are compared."""
        value: Similarity = self.config.similarity
        return value

    def compilable(self) -> Sequence[Compilable]:
        """The trained encoders; where both are frozen, the heads, since nothing else is computed in a step."""
        one_shape = (True, False)  # pictures have one size, captions several lengths
        trained = [
            (side, same) for (side, frozen), same in zip(encoder_sides(self), one_shape, strict=True) if not frozen
        ]
        if not trained:
            return Compilable(self.image_projection, True), Compilable(self.text_projection, True)
        return [Compilable(side, same) for side, same in trained if side.compiles]

    def embed_images(self, rows: Tensor) -> Tensor:
        """(n, dimension) vectors of images, prepared for the similarity, from rows as ``image_features`` takes them."""
        return self.similarity.images(self.image_projection(image_features(self, rows)).float())

    def embed_captions(self, texts: Tensor, lengths: Tensor | None = None) -> Tensor:
        """(n, dimension) vectors of texts, prepared for the similarity, from texts as ``text_features`` takes them."""
        return self.similarity.texts(self.text_projection(text_features(self, texts, lengths)).float())

    def embed(self, batch: EncoderBatch) -> tuple[Tensor, Tensor]:
        """(n, dimension) vectors of both sides of a batch."""
        return self.embed_images(batch.rows), self.embed_captions(batch.texts, batch.lengths)

    def scores_of(self, pairs: Pairs, autocast: Autocast = nullcontext) -> VectorScores:
        """Similarities of all images with all captions of some pairs."""
        with autocast():
            images = self.encode_rows(pairs.rows, alike=False)
            if pairs.text_rows is None:
                texts = self.encode_tokens(pairs.texts)
            else:
                texts = self.encode_text_rows(pairs.text_rows)
        kept: NDArray[np.int64] = np.arange(len(pairs.rows))
        return VectorScores(pairs.collection, kept, pairs.rows.issues, images, texts, self.similarity)

    def encode_image(
        self,
        pictures: Pictures,
        *,
        progress: Progress | None = None,
        cache: Path | None = None,
        batch: int = 64,
    ) -> EncodedImages:
        """Vectors of picture files, of pictures in memory, or of rows of features.

        Features of files under a frozen backbone are cached, as in training. The arguments are those of
        :meth:`~rungwise.models._encoder_pair.EncoderPair.rows_of`.
        """
        rows = self.rows_of(pictures, cache=cache, progress=progress, batch=batch)
        alike = isinstance(pictures, FeatureRows) or not any(isinstance(one, bytes) for one in pictures)
        return EncodedImages(self.encode_rows(rows, alike=alike), rows.kept, rows.issues)

    def prepare_image(self, picture: Picture | bytes) -> Callable[[], EncodedImages]:
        """Decode picture bytes now, and encode them when the returned function is called.

        Files are read by the returned function, since their features may be cached.
        """
        if not isinstance(picture, bytes):
            return super().prepare_image(picture)  # its features may be cached
        preprocessing = picture_side(self).preprocessing
        pixels = prepared_picture(picture, preprocessing.apply, shorter_side=preprocessing.decoded_side)

        def encode() -> EncodedImages:
            with inference(self):
                vectors = self.embed_images(pixels[None].to(self.device)).float().cpu().numpy()
            return EncodedImages(vectors, np.arange(1))

        return encode

    def encode_text(self, texts: Sequence[str] | FeatureRows, *, batch: int = 256) -> NDArray[np.float32]:
        """(len(texts), dimension) float32 vectors of captions or queries, or of rows of features in their place."""
        if isinstance(texts, FeatureRows):
            return self.encode_text_rows(text_inputs(self, texts, None))
        return self.encode_tokens(self.text_encoder.tokenise(texts), batch=batch)

    def encode_captions(
        self, texts: Sequence[str] | FeatureRows, *, progress: Progress | None = None, cache: Path | None = None
    ) -> NDArray[np.float32]:
        """Vectors of captions; those of a frozen encoder are cached, as in training."""
        if texts_are_rows(self):
            return self.encode_text_rows(text_inputs(self, texts, cache, progress))
        return super().encode_captions(texts, progress=progress, cache=cache)

    def encode_rows(self, rows: ImageInputs, *, alike: bool = True) -> NDArray[np.float32]:
        """(len(rows), dimension) vectors of images whose features or pixels are given.

        Args:
            rows: Rows of the images.
            alike: Whether an image must get the same vector to the last bit, whichever others it comes with.
        """
        if alike and not self.config.image.frozen:
            return self._encode_pixels(rows)
        embed = of_one_size(self.embed_images, _IMAGES_AT_ONCE) if alike else self.embed_images
        return self._vectors(np.arange(len(rows)), _IMAGES_AT_ONCE, lambda some: embed(rows.take(some).to(self.device)))

    def _encode_pixels(self, rows: ImageInputs) -> NDArray[np.float32]:
        """Vectors of pixels, which go through a whole network."""
        found = np.zeros((len(rows), self.dimension), np.float32)
        with inference(self):
            for part in encoded(
                len(rows),
                lambda at: rows.take(np.array([at]))[0],
                lambda pixels: self.embed_images(pixels).float(),
                self.device,
                alike=True,
            ):
                if part.values is not None:
                    found[part.positions] = part.values
        return found

    def encode_text_rows(self, rows: ImageInputs) -> NDArray[np.float32]:
        """(len(rows), dimension) vectors of texts whose vectors under the frozen encoder are given."""
        return self._vectors(
            np.arange(len(rows)), _TEXTS_AT_ONCE, lambda some: self.embed_captions(rows.take(some).to(self.device))
        )

    def encode_tokens(self, tokens: Sequence[Sequence[int]], batch: int = 256) -> NDArray[np.float32]:
        """Vectors of tokenised captions, encoded shortest first so that batches hold little padding."""
        numbers = Tokens.of(tokens)
        order = np.argsort(numbers.lengths, kind="stable")
        return self._vectors(order, batch, lambda some: self._embed_tokens(numbers, some))

    def _embed_tokens(self, tokens: Tokens, some: NDArray[np.int64]) -> Tensor:
        """(len(some), dimension) vectors of some of the captions."""
        padded, lengths = tokens.padded(some, self.text_encoder.pad_number)
        return self.embed_captions(padded.to(self.device), lengths)

    def _vectors(
        self, order: NDArray[np.int64], batch: int, embed: Callable[[NDArray[np.int64]], Tensor]
    ) -> NDArray[np.float32]:
        """(len(order), dimension) vectors of items, embedded in this order, ``batch`` at a time."""
        vectors = np.zeros((len(order), self.dimension), np.float32)
        with inference(self):
            for begin in range(0, len(order), batch):
                some = order[begin : begin + batch]
                vectors[some] = embed(some).float().cpu().numpy()
        return vectors
