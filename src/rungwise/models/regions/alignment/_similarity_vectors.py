"""Similarity vectors of a pair (Diao et al. 2021, section 3.2), which SGR and SAF read.

With regions v_i and words w_1..w_L of length 1, and of either side one vector v, w by self-attention
(:mod:`rungwise.models.regions._self_attention`)::

    a_ij = LeakyReLU(v_i . w_j),  over the words divided by its length      (the program's clipped_l2norm)
    b_ij = exp(lambda a_ij) / sum_i exp(lambda a_ij)                        (Eq. 3), lambda 9
    c_j  = sum_i b_ij v_i,  divided by its length
    s_j  = W_l (c_j - w_j)^2 + b_l,  divided by its length                  (Eq. 4), squares of each number
    s_0  = W_g (v - w)^2 + b_g,      divided by its length                  (Eq. 2)

The nodes of a pair are s_0, s_1..s_L. The layer W_l is most of the work, which no algebra takes away: the squares of a
pair are its own. The length of a context is known before the context is: |sum_i b_i v_i|^2 = b' G b with the products G
of the image's regions. So one product makes contexts of length 1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from rungwise.encoders import LinearHead
from rungwise.models.regions._self_attention import SelfAttention, linear
from rungwise.similarity import SetSimilarity, Side, attention_scores, products, widened

Module = TypeVar("Module", bound=nn.Module)

SMOOTHING = 9.0
"""lambda, as in the authors' program."""
_LEAST = 1e-16


class SimilarityVectors(nn.Module):
    """Module that computes the nodes (similarity vectors) of pairs.

    Args:
        width: Width D of regions and words.
        vector_width: Width of a node.
        dropout: Dropout of self-attention.
        regions: Number of regions of every image.
    """

    def __init__(self, width: int, vector_width: int, dropout: float, regions: int) -> None:
        super().__init__()
        self.width = width
        self.region_attention = SelfAttention(width, dropout, regions)
        self.word_attention = SelfAttention(width, dropout)
        self.local = LinearHead().build(width, vector_width)
        self.whole = LinearHead().build(width, vector_width)

    def of_images(self, regions: Tensor) -> Side:
        """(n, R, D) regions, their (n, R, R) inner products, and (n, D) vectors of whole images."""
        exact = widened(regions)
        with torch.autocast(regions.device.type, enabled=False):
            gram = exact @ exact.transpose(1, 2)
        return regions, gram, self.region_attention(regions).to(regions.dtype)

    def of_captions(self, words: Tensor) -> Side:
        """(m, L, D) words, and (m, D) vectors of whole captions."""
        return words, self.word_attention(words).to(words.dtype)

    def nodes(self, images: Side, captions: Side) -> Tensor:
        """(n, m, L + 1, vector_width) similarity vectors of length 1; those of whole image and caption come first.

        ``images`` and ``captions`` are results of :meth:`of_images` and :meth:`of_captions`.
        """
        (regions, gram, pictures), (words, texts) = images, captions
        (n, m), length = (len(regions), len(words)), words.shape[1]
        with torch.autocast(regions.device.type, enabled=False):
            # In place: (n, m L, D) is the largest tensor by far, and stays in the processor's cache.
            differences = contexts(regions, gram, words).sub_(words.flatten(0, 1))
            parts = F.normalize(linear(self.local, differences.square_()), dim=2).view(n, m, length, -1)
            squares = (pictures.unsqueeze(1) - texts).square_()
            wholes = F.normalize(linear(self.whole, squares), dim=2)
            return torch.cat([wholes.unsqueeze(2), parts], dim=2)


def contexts(regions: Tensor, gram: Tensor, words: Tensor) -> Tensor:
    """(n, m L, D) context of each picture for each word, of length 1, in the precision of the regions.

    ``regions`` are (n, R, D) with (n, R, R) inner products ``gram``, ``words`` are (m, L, D).
    """
    (n, r, _), (m, length, _) = regions.shape, words.shape
    s = products(words.flatten(0, 1), regions.flatten(0, 1)).view(m, length, n, r)
    weights = (attention_scores(s, over=1) * SMOOTHING).softmax(dim=3).view(m * length, n, r).transpose(0, 1)
    squared = ((weights @ gram) * weights).sum(dim=2, keepdim=True)
    return torch.bmm((weights * squared.clamp(min=_LEAST).rsqrt()).to(regions.dtype), regions)


Reader = Callable[[Tensor, torch.dtype], Tensor]
"""Function from (n, m, L + 1, vector_width) nodes and the precision of products to (n, m) similarities."""


class NodeReader(nn.Module, ABC):
    """The part of a model that computes a similarity from the nodes of a pair."""

    @property
    def compares_images(self) -> bool:
        """Whether the images of a block affect each other's similarities now, as batch norm does in training."""
        return False

    @abstractmethod
    def reader(self) -> Reader:
        """Function from nodes to similarities, which serves any number of blocks."""


@dataclass(frozen=True)
class NodeSimilarity(SetSimilarity):
    """Similarity of a pair from its nodes.

    Attributes:
        vectors: Computes the nodes.
        read: Computes the similarity from the nodes.
        compares_images: As in :class:`~rungwise.similarity.SetSimilarity`.
    """

    values: ClassVar[int] = 1 << 22  # 8 MB of bfloat16: the layer after it is faster on many rows

    vectors: SimilarityVectors
    read: Reader
    compares_images: bool = False

    @classmethod
    def of(cls, vectors: SimilarityVectors, nodes: NodeReader) -> NodeSimilarity:
        """Fix the current mode of the modules, whatever mode they are set to later."""
        if not vectors.training:
            vectors, nodes = _still(vectors), _still(nodes)
        with torch.autocast(next(vectors.parameters()).device.type, enabled=False):
            return cls(vectors, nodes.reader(), nodes.compares_images)

    def image_side(self, regions: Tensor) -> Side:
        """Regions, their inner products, and vectors of whole images."""
        return self.vectors.of_images(regions)

    def caption_side(self, words: Tensor) -> Side:
        """Words, and vectors of whole captions."""
        return self.vectors.of_captions(words)

    def block(self, images: Side, captions: Side) -> Tensor:
        """(n, m) similarities."""
        nodes = self.vectors.nodes(images, captions)
        with torch.autocast(nodes.device.type, enabled=False):
            return self.read(nodes, images[0].dtype)

    def values_of_pair(self, regions: int, words: int) -> int:
        """Number of words times D."""
        return words * self.vectors.width


def _still(module: Module) -> Module:
    """A copy of a module with the same tensors, whose mode nobody else changes."""
    return deepcopy(module, {id(one): one for one in (*module.parameters(), *module.buffers())})
