"""Stacked cross attention (SCAN, Lee et al. 2018): S of a pair from its regions and its words.

For text-to-image attention (``t2i``), with regions v_i and words w_j of length 1, s_ij = v_i . w_j::

    a_ij = LeakyReLU(s_ij) / sqrt(sum_j LeakyReLU(s_ij)^2)     over the words (the program's clipped_l2norm)
    b_ij = exp(lambda a_ij) / sum_i exp(lambda a_ij)           over the regions (Eq. 2, 3)
    c_j  = sum_i b_ij v_i                                      what the picture has for word j (Eq. 1)
    r_j  = cosine(w_j, c_j)                                    (Eq. 4)
    S    = log(sum_j exp(lambda_lse r_j)) / lambda_lse         or the mean over j (Eq. 5, 6)

For image-to-text attention (``i2t``) regions and words change places (Eq. 7 to 9).

No c_j is ever made: w_j . c_j = sum_i b_ij s_ij, and |c_j|^2 = b_j' G b_j with G = V V', which is computed once for
each image. So a pair costs one product of its regions with its words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor
from torch.nn import functional as F

from rungwise.core import UserError
from rungwise.core.output import short_repr
from rungwise.similarity._pair_blocks import VALUES, SetSimilarity, Side, all_pairs, products, widened
from rungwise.similarity._word_sets import WordSets

Attend = Literal["t2i", "i2t"]
Pooling = Literal["lse", "mean"]
Normalise = Literal["clipped_l2norm", "clipped", "softmax", "l2norm", "l1norm", "clipped_l1norm", "no_norm"]
"""Normalisations of s before the softmax, by the names of SCAN's program (``raw_feature_norm``)."""

_SLOPE = 0.1
_LEAST = 1e-8


def attention_scores(products: Tensor, over: int, normalise: Normalise = "clipped_l2norm") -> Tensor:
    """Raw attention: inner products, clipped and normalised as named by SCAN's program.

    Args:
        products: Inner products of regions and words, with any other axes.
        over: Axis of the attending side: that of the words for ``t2i``.
        normalise: ``clipped`` is LeakyReLU(0.1); ``l2norm`` and ``l1norm`` divide by that norm over the axis,
            ``softmax`` is taken over the axis, ``no_norm`` changes nothing.

    >>> attention_scores(torch.tensor([[3.0, -40.0]]), over=1)
    tensor([[ 0.6000, -0.8000]])
    """
    if normalise == "softmax":
        return products.softmax(dim=over)
    scores = F.leaky_relu(products, _SLOPE) if normalise.startswith("clipped") else products
    if normalise.endswith("l2norm"):
        return scores / (scores.square().sum(dim=over, keepdim=True).clamp(min=_LEAST**2).sqrt() + _LEAST)
    if normalise.endswith("l1norm"):
        return scores / (scores.abs().sum(dim=over, keepdim=True) + _LEAST)
    return scores


@dataclass(frozen=True)
class Attention:
    """The attention of one pair, seen from its words, whichever side attends.

    Attributes:
        weights: (L, R) weights of the regions for each word; each row adds up to 1.
        answers: (L,) how well the picture answered each word, as a cosine.
        shares: (L,) share of each word in the score; they add up to 1.
    """

    weights: Tensor
    answers: Tensor
    shares: Tensor

    __repr__ = short_repr


@dataclass(frozen=True)
class CrossAttention(SetSimilarity):
    """Stacked cross attention as a value.

    Attributes:
        attend: Words to regions (t2i), or regions to words (i2t).
        smoothing: lambda of the softmax over the attended side.
        pooling: Pooling of the cosines: log-sum-exp or mean.
        lse: lambda of log-sum-exp.
        normalise: Normalisation of raw attention, see :func:`attention_scores`.
    """

    attend: Attend = "t2i"
    smoothing: float = 9.0
    pooling: Pooling = "lse"
    lse: float = 6.0
    normalise: Normalise = "clipped_l2norm"

    def __post_init__(self) -> None:
        for name, kinds in (("attend", Attend), ("pooling", Pooling), ("normalise", Normalise)):
            if getattr(self, name) not in get_args(kinds):
                raise UserError(f"{name} must be one of {', '.join(get_args(kinds))}, got {getattr(self, name)!r}")
        if not self.smoothing > 0 or not self.lse > 0:
            raise UserError(f"smoothing and lse must be positive, got {self.smoothing:g} and {self.lse:g}")

    def image_side(self, regions: Tensor) -> Side:
        """(n, R, D) regions; for t2i their (n, R, R) inner products, for i2t their (n, R) lengths."""
        exact = widened(regions)
        if self.attend == "t2i":
            return regions, _own_products(exact)
        return regions, exact.norm(dim=2)

    def caption_side(self, words: Tensor) -> Side:
        """(m, L, D) words; for t2i their (m, L) lengths, for i2t their (m, L, L) inner products."""
        exact = widened(words)
        if self.attend == "t2i":
            return words, exact.norm(dim=2)
        return words, _own_products(exact)

    def block(self, images: Side, captions: Side) -> Tensor:
        """(n, m) similarities."""
        return self.pooled(self.answers(images, captions))

    def answers(self, images: Side, captions: Side) -> Tensor:
        """The cosines r: (n, L, m) of each word for t2i, (n, R, m) of each region for i2t."""
        (regions, of_regions), (words, of_words) = images, captions
        with torch.autocast(regions.device.type, enabled=False):
            s = _products_of_sets(regions, words)  # (n, R, L, m)
            if self.attend == "t2i":
                b = self._attention(s, over=2, among=1)
                squared = (torch.matmul(of_regions, b.flatten(2)).view_as(b) * b).sum(dim=1)
                along, length = (b * s).sum(dim=1), of_words.T
            else:
                b = self._attention(s, over=1, among=2)
                squared = (torch.einsum("mkl,nrlm->nrkm", of_words, b) * b).sum(dim=2)
                along, length = (b * s).sum(dim=2), of_regions.unsqueeze(2)
            return along / (length * squared.clamp(min=_LEAST**2).sqrt()).clamp(min=_LEAST)

    def _attention(self, s: Tensor, over: int, among: int) -> Tensor:
        return (attention_scores(s, over, self.normalise) * self.smoothing).softmax(dim=among)

    def pooled(self, answers: Tensor) -> Tensor:
        """(n, m) similarities from (n, k, m) cosines."""
        if self.pooling == "mean":
            return answers.mean(dim=1)
        return (answers * self.lse).logsumexp(dim=1) / self.lse

    def weights(self, regions: Tensor, words: Tensor) -> tuple[Tensor, Tensor]:
        """Which of the (R, D) regions answered which of the (L, D) words of one pair.

        Returns:
            (L, R) weights b, each row adding up to 1 for t2i and each column for i2t; and the cosines r, (L,) of the
            words for t2i, (R,) of the regions for i2t.
        """
        with torch.autocast(regions.device.type, enabled=False):
            s = _products_of_sets(regions.unsqueeze(0), words.unsqueeze(0))
            t2i = self.attend == "t2i"
            b = self._attention(s, over=2 if t2i else 1, among=1 if t2i else 2)[0, :, :, 0]
        sides = self.image_side(regions.unsqueeze(0)), self.caption_side(words.unsqueeze(0))
        return b.T, self.answers(*sides)[0, :, 0]

    def attention(self, regions: Tensor, words: Tensor) -> Attention:
        """The attention of one pair, (R, D) regions and (L, D) words, seen from its words.

        An attending item has the weight p, the derivative of S by its cosine r: exp(lambda_lse r) over the sum of all
        for log-sum-exp, and equal weights for the mean. Where regions attend, p_i b_ij of the score comes by way of
        region i and word j: a word's share is the sum over i, its weights are its parts of that sum, and its answer is
        the mean of r with these weights.
        """
        b, r = self.weights(regions, words)
        p = (r * self.lse).softmax(dim=0) if self.pooling == "lse" else torch.full_like(r, 1 / len(r))
        if self.attend == "t2i":
            return Attention(b, r, p)
        shares = (b * p).sum(dim=1)
        weights = b * p / shares.unsqueeze(1)
        return Attention(weights, weights @ r, shares)

    def values_of_pair(self, regions: int, words: int) -> int:
        """Number of regions times words."""
        return regions * words


def _own_products(sets: Tensor) -> Tensor:
    with torch.autocast(sets.device.type, enabled=False):
        return sets @ sets.transpose(1, 2)


def _products_of_sets(regions: Tensor, words: Tensor) -> Tensor:
    """(n, R, L, m) products of (n, R, D) and (m, L, D): the last axis is long, so sums over the others are fast."""
    (n, r, _), (m, length, _) = regions.shape, words.shape
    by_place = words.transpose(0, 1).reshape(length * m, -1)
    return products(regions.reshape(n * r, -1), by_place).view(n, r, length, m)


def cross_attention(
    regions: Tensor,
    words: Tensor,
    lengths: Tensor | Sequence[int],
    *,
    attend: Attend = "t2i",
    smoothing: float = 9.0,
    pooling: Pooling = "lse",
    lse: float = 6.0,
    normalise: Normalise = "clipped_l2norm",
    values: int = VALUES,
) -> Tensor:
    """Stacked cross attention (SCAN, Lee et al. 2018) of all images with all captions; differentiable.

    Args:
        regions: (images, R, D), each of length 1.
        words: (captions, W, D), each of length 1; what follows the end of a caption is not read.
        lengths: (captions,) number of words of each caption, at least 1.
        attend: Words to regions (``t2i``), or regions to words (``i2t``).
        smoothing: lambda of the softmax; the authors take 9 for t2i and 4 for i2t.
        pooling: ``"lse"`` (log-sum-exp) or ``"mean"`` over the attending side.
        lse: lambda of log-sum-exp; the authors take 6 for t2i, and 5 (Flickr30K) or 20 (COCO) for i2t.
        normalise: Normalisation of raw attention, by the names of the authors' program; see :func:`attention_scores`.
        values: Numbers that a tensor of a block may hold, which bounds memory.

    Returns:
        (images, captions), in float64 for float64 sets, else in float32.

    Raises:
        UserError: If shapes or types do not fit, or an option is not known.

    >>> regions = F.normalize(torch.tensor([[[1.0, 0.0], [0.0, 1.0]]]), dim=2)
    >>> words = torch.tensor([[[1.0, 0.0], [9.0, 9.0]], [[0.6, 0.8], [0.0, 1.0]]])
    >>> cross_attention(regions, words, [1, 2], pooling="mean").shape
    torch.Size([1, 2])
    """
    similarity = CrossAttention(attend, smoothing, pooling, lse, normalise)
    if regions.dtype != words.dtype or not regions.is_floating_point():
        raise UserError(
            f"regions and words must hold floating-point numbers of one kind, got {regions.dtype} and {words.dtype}"
        )
    return all_pairs(similarity, regions, WordSets.of(words, lengths), values=values)
