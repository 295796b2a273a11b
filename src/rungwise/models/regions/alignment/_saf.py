"""SAF: similarity attention filtration (Diao et al. 2021, section 3.4).

The nodes s_0..s_L of a pair (:mod:`rungwise.models.regions.alignment._similarity_vectors`) are weighed by gates::

    a_p = w_f' s_p + b_f
    g_p = sigmoid(N(a_p)) / sum_q sigmoid(N(a_q))       (Eq. 7), N: batch norm of one channel
    z   = sum_p g_p s_p,  divided by its length         (Eq. 8)
    S   = sigmoid(w' z + b)

The program gives batch norm one caption at a time, with all pictures of the batch. So in training a_p is normalised by
mean and variance over the pictures and the L + 1 nodes of its own caption, and that is kept here. The statistics that
evaluation reads move once for a batch, by the mean over its captions [ours]; the program moves them after each caption
in turn, so that they hang on the order of the last few.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from rungwise.core import STRICT
from rungwise.encoders import LinearHead
from rungwise.models._encoder_pair import EncoderBatch
from rungwise.models._training_pairs import Autocast, ScoredBatch
from rungwise.models.io import ModelConfig
from rungwise.models.regions._self_attention import linear
from rungwise.models.regions.alignment._base import AlignedConfig, AlignedScorer
from rungwise.models.regions.alignment._similarity_vectors import NodeReader, Reader

_LEAST = 1e-8
"""Number that the program adds to a sum of gates."""


@dataclass(frozen=True)
class SAFConfig(AlignedConfig):
    """Similarity attention filtration (Diao et al. 2021).

    Attributes:
        kind: Name of the family.
    """

    __pydantic_config__ = STRICT

    kind: Literal["saf"] = "saf"


class CaptionNorm(nn.BatchNorm1d):
    """Batch norm of one channel with statistics of each caption.

    In training it collects the statistics of a batch between :meth:`begin_batch` and :meth:`end_batch`; those of blocks
    that are recomputed in the backward pass are dropped with the next batch.
    """

    def __init__(self) -> None:
        super().__init__(1)
        self._batch: list[tuple[Tensor, Tensor]] = []

    def forward(self, logits: Tensor) -> Tensor:
        """Normalise (n, m, k) logits of n images with m captions of k nodes.

        In training, the n images must be all those of the batch.
        """
        captions = logits.shape[1]
        weight, bias = self.weight.expand(captions), self.bias.expand(captions)
        if not self.training:
            mean, variance = self.running_mean, self.running_var
            assert mean is not None  # statistics are kept
            assert variance is not None
            statistics = mean.expand(captions), variance.expand(captions)
            return F.batch_norm(logits, *statistics, weight, bias, eps=self.eps)
        self._batch.append(torch.var_mean(logits.detach(), dim=(0, 2)))
        return F.batch_norm(logits, None, None, weight, bias, training=True, eps=self.eps)

    def begin_batch(self) -> None:
        """Drop the statistics of the previous batch."""
        self._batch.clear()

    @torch.no_grad()
    def end_batch(self) -> None:
        """Move the running statistics towards the mean over the captions of this batch."""
        if self._batch:
            for kept, seen in zip((self.running_var, self.running_mean), zip(*self._batch, strict=True), strict=True):
                assert kept is not None
                kept.lerp_(torch.cat(seen).mean().to(kept.dtype), 0.1)
            assert self.num_batches_tracked is not None
            self.num_batches_tracked.add_(1)


class Filtration(NodeReader):
    """Gates on the nodes of the given ``width``, and the score of their weighted sum."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gate = LinearHead().build(width, 1)
        self.norm = CaptionNorm()
        self.score = LinearHead().build(width, 1)

    @property
    def compares_images(self) -> bool:
        """True in training, because of batch norm."""
        return self.training

    def reader(self) -> Reader:
        """The forward pass."""
        return self.forward

    def forward(self, nodes: Tensor, precision: torch.dtype) -> Tensor:
        """(n, m) similarities from (n, m, k, width) nodes; no product is worth rounding to ``precision``."""
        gates = self.norm(linear(self.gate, nodes).squeeze(3)).sigmoid()
        gates = gates / (gates.sum(dim=2, keepdim=True) + _LEAST)
        kept = F.normalize((gates.unsqueeze(2) @ nodes).squeeze(2), dim=2)
        return linear(self.score, kept).squeeze(2).sigmoid()


class SAF(AlignedScorer):
    """Similarity attention filtration (Diao et al. 2021)."""

    kind: ClassVar[str] = "saf"
    config_type: ClassVar[type[ModelConfig]] = SAFConfig
    nodes: Filtration

    @staticmethod
    def node_reader(config: Any) -> Filtration:
        """Gates on the nodes."""
        return Filtration(config.vector_width)

    def score(self, batch: EncoderBatch, autocast: Autocast = nullcontext, *, within: bool = False) -> ScoredBatch:
        """Scores of a batch's images with its captions; in training, they update the statistics of batch norm."""
        self.nodes.norm.begin_batch()
        scored = super().score(batch, autocast, within=within)
        self.nodes.norm.end_batch()
        return scored
