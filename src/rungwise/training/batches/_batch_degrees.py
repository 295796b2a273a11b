"""Relevance degrees of a training batch, and of all pairs of a split."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from rungwise.models import Pairs
from rungwise.relevance import CaptionPairs, Relevance, caption_pairs, refuse_odd

Positions = NDArray[np.int64]


class BatchDegrees:
    """Relevance of training batches, asked by image or by the caption that comes with the image.

    Args:
        source: Degrees by positions in the collection.
        by_caption: Whether degrees are R(t_q, t_p) by the caption that is paired with the image *in the batch* (Zhou et
            al. 2020), instead of by the image.
    """

    def __init__(self, source: Relevance, by_caption: bool = False) -> None:
        self.by_caption = by_caption
        self._pairs: CaptionPairs | None = caption_pairs(source) if by_caption else None
        self._source = source

    def block(self, queries: ArrayLike, captions: ArrayLike) -> NDArray[np.float32]:
        """(len(queries), len(captions)) degrees of captions.

        Args:
            queries: Positions of images, or of their paired captions where degrees are by caption.
            captions: Positions of captions.
        """
        blocks = self._source.block if self._pairs is None else self._pairs.pair_block
        degrees = blocks(queries, captions)
        refuse_odd(self._source, degrees)
        return degrees

    def dense(self) -> NDArray[np.float32]:
        """(images, captions) degrees, by image."""
        return self._source.dense()

    def of_batch(self, pairs: Pairs, chosen: Positions, device: torch.device) -> Tensor:
        """(n, n) degrees of a batch, on a device.

        ``chosen`` are (n,) positions of captions in ``pairs``; each comes with its image.
        """
        captions = pairs.captions[chosen]
        queries = captions if self.by_caption else pairs.images[pairs.image[chosen]]
        return torch.from_numpy(self.block(queries, captions)).to(device)


class SplitDegrees:
    """Degrees by positions among the images and captions of some pairs; ``source`` counts in the whole collection."""

    def __init__(self, source: Relevance, pairs: Pairs) -> None:
        self._source = source
        self._pairs = pairs

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of all degrees: (images, captions)."""
        return len(self._pairs.images), len(self._pairs)

    def block(self, images: ArrayLike, captions: ArrayLike) -> NDArray[np.float32]:
        """(len(images), len(captions)) degrees."""
        return self._source.block(self._pairs.images[np.asarray(images)], self._pairs.captions[np.asarray(captions)])

    def dense(self) -> NDArray[np.float32]:
        """(images, captions) degrees."""
        return self._source.block(self._pairs.images, self._pairs.captions)
