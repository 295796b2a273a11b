"""SCAN: stacked cross attention of words over regions, or of regions over words (Lee et al. 2018).

A picture is its regions under a linear layer, a text its words under a bidirectional GRU whose directions are averaged;
both have length 1. What is computed of a pair stands in :mod:`rungwise.similarity._stacked_attention`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import Tensor

from rungwise.core import STRICT, Cancelled
from rungwise.models.io import ModelConfig
from rungwise.models.regions._base import RegionScorer
from rungwise.models.regions._config import RegionConfig
from rungwise.similarity import Attend, Attention, CrossAttention, Normalise, Pooling


@dataclass(frozen=True)
class SCANConfig(RegionConfig):
    """Stacked cross attention (Lee et al. 2018).

    Attributes:
        kind: Name of the family.
        attend: Words to regions (t2i), or regions to words (i2t).
        smoothing: lambda of the attention; 9 for t2i and 4 for i2t in the paper.
        pooling: How cosines are pooled: lse (log-sum-exp) or mean.
        lse: lambda of log-sum-exp; 6 for t2i, 5 or 20 for i2t.
        normalise: Normalisation of raw attention, by the names of the authors' program: clipped_l2norm, clipped,
            softmax, l2norm, l1norm, clipped_l1norm, no_norm.
    """

    __pydantic_config__ = STRICT

    kind: Literal["scan"] = "scan"
    attend: Attend = "t2i"
    smoothing: float = 9.0
    pooling: Pooling = "lse"
    lse: float = 6.0
    normalise: Normalise = "clipped_l2norm"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.comparison()

    def cancelled(self, place: str) -> Iterator[Cancelled]:
        """Lambda of a pooling that is not taken."""
        if self.pooling != "lse" and self.lse != SCANConfig.lse:
            yield Cancelled(
                f"{place}.lse {self.lse:g} changes nothing: {place}.pooling is {self.pooling}; leave it out, or set"
                f" {place}.pooling to lse"
            )

    def comparison(self) -> CrossAttention:
        """The similarity of sets that the settings describe."""
        return CrossAttention(self.attend, self.smoothing, self.pooling, self.lse, self.normalise)


class SCAN(RegionScorer):
    """Stacked cross attention (Lee et al. 2018).

    >>> from rungwise.encoders.images import ImageConfig
    >>> image = ImageConfig("test_resnet.r160_in1k", weights="random", size=32, pool="regions", l2_normalise=False)
    >>> model = SCAN.create(SCANConfig(image=image, dimension=8), ["a dog", "a cat"])
    >>> model.kind, model.config.attend
    ('scan', 't2i')
    """

    kind: ClassVar[str] = "scan"
    config_type: ClassVar[type[ModelConfig]] = SCANConfig

    @property
    def comparison(self) -> CrossAttention:
        """The similarity of sets that the configuration describes."""
        found: CrossAttention = self.config.comparison()
        return found

    def attention(self, regions: Tensor, words: Tensor) -> Attention:
        """Attention weights of one pair."""
        return self.comparison.attention(regions, words)
