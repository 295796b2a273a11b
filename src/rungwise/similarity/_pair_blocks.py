"""Similarities computed from the regions and words of each pair: all pairs, block by block.

A :class:`SetSimilarity` says what is computed once for each image, once for each caption, and for each pair. The
functions here go through all pairs: captions of one length together, with as many images and captions at a time as a
bound on memory allows. Values and gradients do not depend on the blocks except for rounding.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from rungwise.core import UserError
from rungwise.similarity._word_sets import WordSets

Side = tuple[Tensor, ...]
"""Tensors computed from some images, or from some captions of one length; their first axis counts the items."""

VALUES = 1 << 20
"""Default number of values in each tensor of a block: 4 MB of float32."""
_ONE_WAY = 256
"""Largest number of captions in a block; more make no product faster."""
_WORDS = 1 << 25
"""Largest number of values in the words of captions that wait for their images: 128 MB of float32."""


class SetSimilarity(ABC):
    """A similarity of a set of regions and a set of words.

    Attributes:
        compares_images: Whether a pair's similarity depends on the other images, so that a block must hold all of them.
        values: Default number of values in each tensor of a block.
    """

    compares_images: bool = False
    values: ClassVar[int] = VALUES

    @abstractmethod
    def image_side(self, regions: Tensor) -> Side:
        """Tensors that are computed once for each image, from (n, R, D) regions."""

    @abstractmethod
    def caption_side(self, words: Tensor) -> Side:
        """Tensors that are computed once for each caption, from (m, L, D) words of captions of one length."""

    @abstractmethod
    def block(self, images: Side, captions: Side) -> Tensor:
        """(n, m) similarities, in float32 at least."""

    @abstractmethod
    def values_of_pair(self, regions: int, words: int) -> int:
        """Number of values that the largest tensor of a block holds for one pair."""


def products(first: Tensor, second: Tensor) -> Tensor:
    """(n, m) inner products of (n, D) and (m, D), returned in float32 at least, whatever they were computed in."""
    return widened(first @ second.T)


def widened(tensor: Tensor) -> Tensor:
    """The tensor in float32 at least."""
    return tensor if tensor.dtype == torch.float64 else tensor.float()


def all_pairs(
    similarity: SetSimilarity, regions: Tensor, words: WordSets, *, values: int | None = None, recompute: bool = False
) -> Tensor:
    """(images, captions) similarities of all images with all captions, in float32 at least.

    Args:
        similarity: Similarity of a pair.
        regions: (images, R, D).
        words: Words of the captions.
        values: Number of values in each tensor of a block, which bounds the memory besides the two sides; None takes
            the similarity's own.
        recompute: Whether blocks are recomputed in the backward pass instead of being kept.
    """
    if regions.ndim != 3 or words.words.ndim != 2 or regions.shape[2] != words.words.shape[1]:
        raise UserError(
            f"regions must be (images, R, D) and words of the same D, got {tuple(regions.shape)} and words of width"
            f" {words.words.shape[-1]}"
        )
    if not regions.shape[1]:
        raise UserError("the images have no regions; give at least one for each image")
    if not len(regions) or not len(words):
        return regions.new_zeros((len(regions), len(words)))
    values = similarity.values if values is None else values
    images = similarity.image_side(regions)
    together = len(regions) if similarity.compares_images else 1
    found, order = [], []
    for which, group in words.by_length():
        many = similarity.values_of_pair(regions.shape[1], group.shape[1])
        captions_at_once = max(1, min(_ONE_WAY, values // (many * together)))
        for part in torch.split(group, captions_at_once):
            captions = similarity.caption_side(part)
            images_at_once = max(together, values // (many * len(part)))
            blocks = [_block(similarity, some, captions, recompute) for some in _split(images, images_at_once)]
            found.append(torch.cat(blocks))
        order.append(which)
    place = torch.argsort(torch.cat(order)).to(regions.device)
    return torch.cat(found, dim=1).index_select(1, place)


def some_pairs(
    similarity: SetSimilarity, regions: Tensor, words: WordSets, images: Tensor, captions: Tensor, values: int = VALUES
) -> Tensor:
    """(pairs,) similarities of single pairs, in float32 at least; no other pair is computed.

    An image is compared with all of its captions of one length at a time: nothing of it is copied, and a pair costs two
    to three times as much as in :func:`all_pairs`.

    Args:
        similarity: Similarity of a pair.
        regions: (images, R, D).
        words: Words of the captions.
        images: (pairs,) int64 positions, on the processor.
        captions: (pairs,) int64 positions, on the processor.
        values: Number of values in each tensor of a block.
    """
    found = regions.new_zeros(len(images), dtype=torch.promote_types(regions.dtype, torch.float32))
    if not len(images):
        return found
    sides = similarity.image_side(regions)
    in_order = torch.argsort(images, stable=True)
    of_caption = torch.full((len(words),), -1)
    for which, group in words.by_length():
        many = similarity.values_of_pair(regions.shape[1], group.shape[1])
        at_once = max(1, _WORDS // group[0].numel())
        for some, part in zip(torch.split(which, at_once), torch.split(group, at_once), strict=True):
            of_caption.fill_(-1)
            of_caption[some] = torch.arange(len(some))
            here = in_order[of_caption[captions[in_order]] >= 0]
            if not len(here):
                continue
            texts = similarity.caption_side(part)
            own, counts = torch.unique_consecutive(images[here], return_counts=True)
            for image, pairs in zip(own.tolist(), torch.split(here, counts.tolist()), strict=True):
                one = tuple(side[image : image + 1] for side in sides)
                for few in torch.split(pairs, max(1, values // many)):
                    place = of_caption[captions[few]].to(part.device)
                    block = similarity.block(one, tuple(side[place] for side in texts))
                    found[few.to(found.device)] = block[0].to(found.dtype)
    return found


def _split(side: Side, at_once: int) -> Iterator[Side]:
    for begin in range(0, len(side[0]), at_once):
        yield tuple(one[begin : begin + at_once] for one in side)


def _block(similarity: SetSimilarity, images: Side, captions: Side, recompute: bool) -> Tensor:
    if not (recompute and torch.is_grad_enabled()):
        return similarity.block(images, captions)
    count = len(images)

    def run(*sides: Tensor) -> Tensor:
        return similarity.block(sides[:count], sides[count:])

    block: Tensor = checkpoint(run, *images, *captions, use_reentrant=False)
    return block
